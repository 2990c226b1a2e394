import type { Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { invalid } from '../../kit/errors.ts'

/** Makes a model the organization's default. Throws `invalid` for a disabled model. */
export async function setDefault(
  tx: Prisma.TransactionClient,
  { organizationId }: Actor,
  { id, isActive }: { id: string; isActive: boolean },
): Promise<void> {
  if (!isActive) throw invalid('is_default: the model or its provider is disabled; enable it first')
  await tx.organization.update({ where: { id: organizationId }, data: { defaultModelId: id } })
}

/** Restores the installation's default if the model is the organization's. */
export async function unsetDefault(tx: Prisma.TransactionClient, { organizationId }: Actor, id: string): Promise<void> {
  await tx.organization.updateMany({
    where: { id: organizationId, defaultModelId: id },
    data: { defaultModelId: null },
  })
}
