import type { OrganizationId } from '../../contract/kit/ids.ts'
import type {
  CreateOrganizationRequest,
  Organization,
  UpdateOrganizationRequest,
} from '../../contract/organizations.ts'
import type { Member, Organization as OrganizationRow, Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { audit, audited } from '../kit/audit/entry.ts'
import { createOnce } from '../kit/create-once.ts'
import { conflict, forbidden, notFound, quotaExceeded } from '../kit/errors.ts'
import type { CreationAttempt } from '../kit/idempotency-keys.ts'
import { DEFAULT_ORGANIZATION_UUID, toId } from '../kit/ids.ts'
import { type PageStart, type Pages, pages } from '../kit/lists.ts'
import type { Deps } from './deps.ts'
import { lockMembers } from './members/lock.ts'

/** Maximum number of organizations that one user may own. */
const MAX_OWNED = 100
const ORGANIZATIONS_AT_ONCE = 100

/** Selects the caller's memberships; for an API key only the one in its organization. */
const memberships = ({ userId, organizationId, apiKeyId }: Actor): Prisma.MemberWhereInput =>
  apiKeyId === null ? { userId } : { userId, organizationId }

type MemberRow = Member & { organization: OrganizationRow }

/** Lists the caller's organizations in the order of joining. */
export const listOrganizations = (deps: Deps, actor: Actor): Pages<Organization> =>
  pages({
    atOnce: ORGANIZATIONS_AT_ONCE,
    read: async ({ after, take }: PageStart<MemberRow>) => {
      const rows = await deps.db.member.findMany({
        where: { AND: [memberships(actor), after === undefined ? {} : joinedAfter(after)] },
        include: { organization: true },
        orderBy: [{ createdAt: 'asc' }, { organizationId: 'asc' }],
        take,
      })
      return { rows, hasMore: rows.length === take }
    },
    present: (rows) => rows.map(({ organization }) => presentOrganization(organization)),
  })

const joinedAfter = ({ createdAt, organizationId }: MemberRow): Prisma.MemberWhereInput => ({
  createdAt: { gte: createdAt },
  OR: [{ createdAt: { gt: createdAt } }, { organizationId: { gt: organizationId } }],
})

/** Returns an organization. Throws `not_found` unless the caller is a member. */
export const getOrganization = async (deps: Deps, actor: Actor, id: OrganizationId): Promise<Organization> =>
  presentOrganization((await requireMember(deps, actor, id)).organization)

/** Returns the caller's membership in an organization. Throws `not_found`. */
export async function requireMember({ db }: { db: Prisma.TransactionClient }, actor: Actor, id: OrganizationId) {
  const member = await db.member.findFirst({
    where: { AND: [memberships(actor), { organizationId: id }] },
    include: { organization: true },
  })
  if (member === null) throw notFound('Organization')
  return member
}

/** Creates an organization that the caller owns. Throws `conflict` when the caller owns too many. */
export async function createOrganization(
  deps: Deps,
  actor: Actor,
  { name }: CreateOrganizationRequest,
  attempt: CreationAttempt,
): Promise<Organization> {
  const { userId } = actor
  const row = await createOnce(attempt, {
    find: (id) => deps.db.organization.findFirst({ where: { id, members: { some: { userId } } } }),
    insert: (id) => deps.db.$transaction((tx) => insertOwned(tx, actor, { id, name, ownerId: userId })),
  })
  return presentOrganization(row)
}

/**
 * Inserts an organization and its owner. Returns undefined when the id is taken. Throws `conflict` when the user owns
 * too many.
 */
async function insertOwned(
  db: Prisma.TransactionClient,
  actor: Actor,
  data: { id: string; name: string; ownerId: string },
): Promise<OrganizationRow | undefined> {
  const { userId } = actor
  // The lock makes a user's creations sequential, so that the limit holds.
  await db.$queryRaw`SELECT 1 FROM users WHERE id = ${userId}::uuid FOR NO KEY UPDATE`
  if ((await db.member.count({ where: { userId, role: 'owner' } })) >= MAX_OWNED) {
    throw quotaExceeded(`You own ${MAX_OWNED} organizations, which is the limit; hand one over to another owner first`)
  }
  const [row] = await db.organization.createManyAndReturn({ data: [data], skipDuplicates: true })
  if (row === undefined) return undefined
  await db.member.create({ data: { userId, organizationId: row.id, role: 'owner' } })
  await audit(db, { ...actor, organizationId: row.id }, { action: 'organization.create', target: row.id })
  return row
}

/** Changes an organization. Throws `not_found`, and `forbidden` when the caller's role in it is member. */
export async function patchOrganization(
  deps: Deps,
  actor: Actor,
  id: OrganizationId,
  { name }: UpdateOrganizationRequest,
): Promise<Organization> {
  const { role, organization } = await requireMember(deps, actor, id)
  if (role === 'member') throw forbidden('Only owners and administrators of the organization may change it')
  if (name == null) return presentOrganization(organization)
  const told = { action: 'organization.update', target: id, details: { fields: ['name'] } } as const
  return audited(deps, { ...actor, organizationId: id }, told, async (tx) => {
    const [changed] = await tx.organization.updateManyAndReturn({
      where: { id: organization.id, members: { some: { userId: actor.userId, role: { in: ['owner', 'admin'] } } } },
      data: { name },
    })
    if (changed === undefined) throw notFound('Organization')
    return presentOrganization(changed)
  })
}

/**
 * Ends an organization for everybody. Its contents are removed afterwards (domain/upkeep). Throws `not_found`,
 * `forbidden` unless the caller owns it, and `conflict` for the default organization.
 */
export const deleteOrganization = (deps: Deps, actor: Actor, id: OrganizationId): Promise<void> =>
  deps.db.$transaction(async (tx) => {
    await lockMembers(tx, id)
    const { role, organizationId } = await requireMember({ db: tx }, actor, id)
    if (role !== 'owner') throw forbidden('Only owners of the organization may delete it')
    await markDeleted(tx, actor, organizationId)
  })

/**
 * Marks an organization as deleted, and removes its members with their API keys and invitations. Its audit log goes with
 * it, so the installation's own organization is told.
 */
export async function markDeleted(tx: Prisma.TransactionClient, actor: Actor, organizationId: string): Promise<void> {
  if (organizationId === DEFAULT_ORGANIZATION_UUID) throw conflict('The default organization cannot be deleted')
  const operators = { ...actor, organizationId: DEFAULT_ORGANIZATION_UUID }
  await audit(tx, operators, { action: 'organization.delete', target: organizationId })
  await tx.organization.updateMany({ where: { id: organizationId }, data: { deletedAt: new Date() } })
  await tx.member.deleteMany({ where: { organizationId } })
}

export const presentOrganization = (row: OrganizationRow): Organization => ({
  id: toId('org', row.id),
  name: row.name,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})
