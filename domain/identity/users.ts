import type { CurrentUser } from '../../contract/auth.ts'
import type { User } from '../../contract/users.ts'
import { containsText } from '../../lib/contains-text.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { toId } from '../kit/ids.ts'
import { type PageStart, type Pages, pages } from '../kit/lists.ts'
import type { Deps } from './deps.ts'
import type { MemberRow } from './members/present.ts'
import { readMembers } from './members/select.ts'

const USERS_AT_ONCE = 100
/** Maximum number of organizations in the answer of `me`; GET /v1/orgs lists all. */
const MAX_ORGANIZATIONS = 1000

/** Lists the organization's users, newest member first. `search` matches a part of the name or e-mail. */
export const listUsers = (deps: Deps, { organizationId }: Actor, search?: string): Pages<User> =>
  pages({
    atOnce: USERS_AT_ONCE,
    read: (place: PageStart<MemberRow>) => readMembers(deps, organizationId, place, isFound(search)),
    present: (rows) => rows.map(presentUser),
  })

const isFound = (search: string | undefined): Prisma.MemberWhereInput =>
  search === undefined ? {} : { user: { OR: [{ name: containsText(search) }, { email: containsText(search) }] } }

/** Returns the caller and their organizations. */
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
    // The user may have left all organizations.
    roles: members.length === 0 ? [] : [role],
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
