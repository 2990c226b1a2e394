import type { CurrentUser } from '../../contract/auth.ts'
import type { User } from '../../contract/users.ts'
import { containsText } from '../../lib/contains-text.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { audit } from '../kit/audit/entry.ts'
import { conflict } from '../kit/errors.ts'
import { ANONYMOUS_USER_UUID, DEFAULT_ORGANIZATION_UUID, toId } from '../kit/ids.ts'
import { type PageStart, type Pages, pages } from '../kit/lists.ts'
import { passOn } from '../kit/owners.ts'
import type { Deps } from './deps.ts'
import { lockMembers } from './members/lock.ts'
import type { MemberRow } from './members/present.ts'
import { readMembers, visibleMembers } from './members/select.ts'
import { markDeleted } from './organizations.ts'

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
  { userId, organizationId, role, apiKeyId }: Actor,
): Promise<CurrentUser> {
  const { members, ...user } = await deps.db.user.findUniqueOrThrow({
    where: { id: userId },
    include: {
      members: {
        where: apiKeyId === null ? {} : { organizationId },
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

/**
 * Deletes the caller, and the caller's organizations without another member. Throws `conflict` for the user of
 * mode none, for the configured administrator, and for the only owner of an organization that others belong to.
 */
export async function deleteCurrentUser(deps: Deps, actor: Actor): Promise<void> {
  const { userId } = actor
  if (userId === ANONYMOUS_USER_UUID) throw conflict('Without sign-in everybody is this user, who cannot be deleted')
  await deps.db.$transaction(async (tx) => {
    const { email } = await tx.user.findUniqueOrThrow({ where: { id: userId } })
    if (email === deps.auth.administrator?.email) {
      throw conflict('The configuration names this user as the administrator; change AUTH_ADMIN_EMAIL first')
    }
    const memberships = await tx.member.findMany({ where: { userId }, orderBy: { organizationId: 'asc' } })
    for (const { organizationId } of memberships) await leave(deps, tx, { ...actor, organizationId })
    await tx.user.delete({ where: { id: userId } })
  })
}

/** Ends the actor's membership, and the organization if it has no other member. */
async function leave(deps: Deps, tx: Prisma.TransactionClient, actor: Actor): Promise<void> {
  const { userId, organizationId } = actor
  await lockMembers(tx, organizationId)
  await audit(tx, actor, { action: 'user.delete', target: userId })
  const others = { organizationId, userId: { not: userId }, AND: visibleMembers(deps) }
  const own = { userId, organizationId, role: 'owner' } as const
  const mayLeave =
    (await tx.member.count({ where: own })) === 0 ||
    (await tx.member.count({ where: { ...others, role: 'owner' } })) > 0
  if (mayLeave || organizationId === DEFAULT_ORGANIZATION_UUID) return passOn(tx, organizationId, userId)
  if ((await tx.member.count({ where: others })) === 0) return markDeleted(tx, actor, organizationId)
  const { name } = await tx.organization.findUniqueOrThrow({ where: { id: organizationId } })
  throw conflict(`${name} has other members and no other owner; make one of them an owner, or delete it first`)
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
