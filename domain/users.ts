import type { CurrentUser } from '../contract/auth.ts'
import type { User } from '../contract/users.ts'
import { containsText } from '../lib/contains-text.ts'
import type { Member, Prisma, User as UserRow } from '../prisma/generated/client.ts'
import type { Actor } from './actor.ts'
import type { Deps } from './deps.ts'
import { ANONYMOUS_USER_UUID, toId } from './ids.ts'

const PAGE = 100
/** What `me` tells of them; GET /v1/orgs has all. */
const MAX_ORGANIZATIONS = 1000

type MemberRow = Member & { user: UserRow }

/** Of the organization, the newest member first, page by page; with `search` those that have it in name or e-mail. */
export async function* listUsers(deps: Deps, actor: Actor, search?: string): AsyncGenerator<User[]> {
  let after: MemberRow | undefined
  do {
    const page = await readPage(deps, actor, search, after)
    yield page.map(presentUser)
    after = page.length < PAGE ? undefined : page.at(-1)
  } while (after !== undefined)
}

function readPage(deps: Deps, actor: Actor, search?: string, after?: MemberRow): Promise<MemberRow[]> {
  const found: Prisma.MemberWhereInput =
    search === undefined ? {} : { user: { OR: [{ name: containsText(search) }, { email: containsText(search) }] } }
  const older: Prisma.MemberWhereInput =
    after === undefined
      ? {}
      : {
          // The bound by itself is what the index is entered with.
          createdAt: { lte: after.createdAt },
          OR: [{ createdAt: { lt: after.createdAt } }, { userId: { lt: after.userId } }],
        }
  // Where people sign in, nobody is anonymous.
  const shown: Prisma.MemberWhereInput = deps.auth.mode === 'none' ? {} : { userId: { not: ANONYMOUS_USER_UUID } }
  return deps.db.member.findMany({
    where: { organizationId: actor.organizationId, AND: [found, older, shown] },
    include: { user: true },
    orderBy: [{ createdAt: 'desc' }, { userId: 'desc' }],
    take: PAGE,
  })
}

/** Who the caller is. */
export async function getCurrentUser(
  deps: Deps,
  { userId, organizationId, role, isApiKey }: Actor,
): Promise<CurrentUser> {
  const { members, ...user } = await deps.db.user.findUniqueOrThrow({
    where: { id: userId },
    include: {
      members: {
        where: isApiKey ? { organizationId } : {},
        include: { organization: true },
        orderBy: [{ createdAt: 'asc' }, { organizationId: 'asc' }],
        take: MAX_ORGANIZATIONS,
      },
    },
  })
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    roles: [role],
    avatar_url: user.avatarUrl,
    organizations: members.map((member) => ({
      public_id: toId('org', member.organizationId),
      name: member.organization.name,
      role: member.role,
    })),
  }
}

const presentUser = ({ user, role }: MemberRow): User => ({
  id: user.id,
  email: user.email,
  name: user.name,
  roles: [role],
  auth_provider: user.provider ?? (user.passwordHash === null ? null : 'password'),
  avatar_url: user.avatarUrl,
  created_at: user.createdAt.toISOString(),
})
