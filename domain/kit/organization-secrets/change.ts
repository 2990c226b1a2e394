import type { OrganizationSecret, PutOrganizationSecretRequest } from '../../../contract/secrets.ts'
import { parseHostPattern } from '../../../lib/outgoing/host-pattern.ts'
import type { Actor } from '../actor.ts'
import { audit, audited } from '../audit/entry.ts'
import type { Deps } from '../deps.ts'
import { invalid, notFound, quotaExceeded } from '../errors.ts'
import { newUuid } from '../ids.ts'
import { lockOrganization } from '../lock-organization.ts'
import { placeOf } from '../secrets.ts'
import { ORGANIZATION_SECRETS } from './column.ts'
import { presentSecret, SHOWN } from './present.ts'

/** Maximum number of an organization's secrets. */
const MAX_COUNT = 100

/**
 * Stores a secret, or replaces its value and hosts. Hosts never change without the value: an administrator could
 * otherwise have the stored value sent to a host of their own. Throws `invalid` and, beyond the quota, `conflict`.
 */
export async function putSecret(
  { db, secrets }: Deps,
  actor: Actor,
  name: string,
  input: PutOrganizationSecretRequest,
): Promise<OrganizationSecret> {
  const { organizationId } = actor
  const key = { organizationId, name }
  const given = {
    hosts: [...new Set(input.hosts.map(checkHost))],
    value: secrets.encrypt(input.value, placeOf(ORGANIZATION_SECRETS, [organizationId, name])),
    updatedAt: new Date(),
  }
  const row = await db.$transaction(async (tx) => {
    await lockOrganization(tx, organizationId)
    const where = { organizationId_name: key }
    const before = await tx.organizationSecret.findUnique({ where, select: { id: true } })
    if (before === null && (await tx.organizationSecret.count({ where: { organizationId } })) >= MAX_COUNT) {
      throw quotaExceeded(`The organization has ${MAX_COUNT} secrets, which is the limit; delete one first`)
    }
    const id = before?.id ?? newUuid()
    const create = { ...key, ...given, id, createdAt: given.updatedAt }
    const stored = await tx.organizationSecret.upsert({ where, create, update: given, select: SHOWN })
    await audit(tx, actor, { action: 'secret.put', target: id, details: { name, hosts: given.hosts } })
    return stored
  })
  return presentSecret(row)
}

/** Deletes a secret. Throws `not_found`. */
export async function deleteSecret(deps: Deps, actor: Actor, name: string): Promise<void> {
  const where = { organizationId_name: { organizationId: actor.organizationId, name } }
  const row = await deps.db.organizationSecret.findUnique({ where, select: { id: true } })
  if (row === null) throw notFound('Secret')
  await audited(deps, actor, { action: 'secret.delete', target: row.id, details: { name } }, async (tx) => {
    const { count } = await tx.organizationSecret.deleteMany({ where: { ...where.organizationId_name, id: row.id } })
    if (count === 0) throw notFound('Secret')
  })
}

function checkHost(text: string, position: number): string {
  const pattern = parseHostPattern(text.trim())
  if (pattern !== undefined) return pattern
  throw invalid(
    `hosts.${position}: must be a host such as api.example.com or *.example.com, without a path, and with a port only ` +
      'if it is not the usual one of https',
  )
}
