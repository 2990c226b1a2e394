import type { Prisma } from '../../prisma/generated/client.ts'

/**
 * Lets changes of one organization take turns until the transaction ends, so that what they count and compare holds. Does
 * not keep others from referring to the organization.
 */
export async function lockOrganization(tx: Prisma.TransactionClient, organizationId: string): Promise<void> {
  await tx.$queryRaw`SELECT 1 FROM organizations WHERE id = ${organizationId}::uuid FOR NO KEY UPDATE`
}
