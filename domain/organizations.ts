import type { OrganizationId } from '../contract/ids.ts'
import type { CreateOrganizationRequest, Organization, UpdateOrganizationRequest } from '../contract/organizations.ts'
import type { Organization as OrganizationRow, Prisma } from '../prisma/generated/client.ts'
import type { Actor } from './actor.ts'
import type { Deps } from './deps.ts'
import { forbidden, invalid, notFound } from './errors.ts'
import type { CreationAttempt } from './idempotency-keys.ts'
import { newUuid, toId } from './ids.ts'

/** That one user may own. */
const MAX_OWNED = 100
const PAGE = 100

/** The caller's memberships; an API key's is the one of its organization. */
const memberships = ({ userId, organizationId, isApiKey }: Actor): Prisma.MemberWhereInput =>
  isApiKey ? { userId, organizationId } : { userId }

/** Those that the caller is a member of, the first joined first, page by page. */
export async function* listOrganizations(deps: Deps, actor: Actor): AsyncGenerator<Organization[]> {
  for (let skip = 0; ; skip += PAGE) {
    const page = await deps.db.member.findMany({
      where: memberships(actor),
      include: { organization: true },
      orderBy: [{ createdAt: 'asc' }, { organizationId: 'asc' }],
      skip,
      take: PAGE,
    })
    yield page.map(({ organization }) => presentOrganization(organization))
    if (page.length < PAGE) return
  }
}

/** Throws `not_found` for one that the caller is no member of. */
export const getOrganization = async (deps: Deps, actor: Actor, id: OrganizationId): Promise<Organization> =>
  presentOrganization((await requireMember(deps, actor, id)).organization)

/** The caller's membership in it. Throws `not_found`. */
export async function requireMember(deps: Deps, actor: Actor, id: OrganizationId) {
  const member = await deps.db.member.findFirst({
    where: { AND: [memberships(actor), { organizationId: id }] },
    include: { organization: true },
  })
  if (member === null) throw notFound('Organization')
  return member
}

/** The caller owns it. Throws `invalid` for one too many. */
export async function createOrganization(
  deps: Deps,
  { userId }: Actor,
  { name }: CreateOrganizationRequest,
  attempt: CreationAttempt,
): Promise<Organization> {
  const id = attempt.uuid ?? newUuid()
  return deps.db.$transaction(async (tx) => {
    // One after the other, so that the limit holds and a request that runs twice finds its organization.
    await tx.$queryRaw`SELECT 1 FROM users WHERE id = ${userId}::uuid FOR NO KEY UPDATE`
    const made = await tx.organization.findFirst({ where: { id, members: { some: { userId } } } })
    if (made !== null) return presentOrganization(made)
    if ((await tx.member.count({ where: { userId, role: 'owner' } })) >= MAX_OWNED) {
      throw invalid(`You own ${MAX_OWNED} organizations, which is as many as one can`)
    }
    const members = { create: { userId, role: 'owner' } } as const
    return presentOrganization(await tx.organization.create({ data: { id, name, members } }))
  })
}

/** Throws `not_found`, and `forbidden` for one whose role there is member. */
export async function patchOrganization(
  deps: Deps,
  actor: Actor,
  id: OrganizationId,
  { name }: UpdateOrganizationRequest,
): Promise<Organization> {
  const { role, organization } = await requireMember(deps, actor, id)
  if (role === 'member') throw forbidden('Only owners and administrators of the organization may change it')
  if (name == null) return presentOrganization(organization)
  const [changed] = await deps.db.organization.updateManyAndReturn({
    where: { id: organization.id, members: { some: { userId: actor.userId, role: { in: ['owner', 'admin'] } } } },
    data: { name },
  })
  if (changed === undefined) throw notFound('Organization')
  return presentOrganization(changed)
}

const presentOrganization = (row: OrganizationRow): Organization => ({
  id: toId('org', row.id),
  name: row.name,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})
