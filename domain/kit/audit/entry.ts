import type { AuditAction } from '../../../contract/audit.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import type { Actor, OrganizationScope, Origin } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { newUuid } from '../ids.ts'

/** What an entry tells. `details` has names of fields, ids and roles, never contents or secrets. */
export type Audited = { action: AuditAction; target: string; details?: Prisma.InputJsonObject }

/** Who did it; a failed sign-in has no known user. */
type By = { userId: string | null; apiKeyId: string | null; origin?: Origin | undefined }

/**
 * Writes an entry for each of `told` into the audit log of the actor's organization. Belongs into the transaction of
 * what it tells. The service itself, in the name of an organization, has no entries.
 */
export const audit = async (
  tx: Prisma.TransactionClient,
  actor: Actor | OrganizationScope,
  ...told: Audited[]
): Promise<void> => {
  if ('userId' in actor && told.length > 0) await write(tx, actor, [actor.organizationId], told)
}

/**
 * Writes an entry about a user into the audit log of each of the user's organizations. `isKnown`: the user did it,
 * as a password or an identity provider has proved.
 */
export async function auditUser(
  tx: Prisma.TransactionClient,
  { userId, origin, isKnown }: { userId: string; origin: Origin; isKnown: boolean },
  told: Omit<Audited, 'target'>,
): Promise<void> {
  const members = await tx.member.findMany({ where: { userId }, select: { organizationId: true } })
  const by = { userId: isKnown ? userId : null, apiKeyId: null, origin }
  const places = members.map(({ organizationId }) => organizationId)
  await write(tx, by, places, [{ ...told, target: userId }])
}

async function write(
  tx: Prisma.TransactionClient,
  { userId, apiKeyId, origin }: By,
  organizationIds: string[],
  told: Audited[],
): Promise<void> {
  const { address = null, requestId = null } = origin ?? {}
  const by = { userId, apiKeyId, address, requestId }
  const entryOf = (organizationId: string, { action, target, details = {} }: Audited) => ({
    ...{ id: newUuid(), organizationId, ...by, action, targetId: target, details },
  })
  await tx.auditEntry.createMany({ data: organizationIds.flatMap((id) => told.map((one) => entryOf(id, one))) })
}

/** Makes a change and its entry in one transaction. A change of nothing throws. */
export const audited = <T>(
  { db }: Pick<Deps, 'db'>,
  actor: Actor,
  told: Audited,
  change: (tx: Prisma.TransactionClient) => Promise<T>,
): Promise<T> =>
  db.$transaction(async (tx) => {
    const changed = await change(tx)
    await audit(tx, actor, told)
    return changed
  })

/** Returns the names of the fields that a request gives, as the detail of an entry. */
export const givenFields = (input: object): { fields: string[] } => ({
  fields: Object.entries(input).flatMap(([name, value]) => (value == null ? [] : [name])),
})
