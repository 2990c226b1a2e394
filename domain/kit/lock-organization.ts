import type { Prisma } from '../../prisma/generated/client.ts'

/**
 * Serializes changes of one organization until the transaction ends, so that what they count and compare stays true.
 * Other transactions may still insert rows that refer to the organization.
 */
export async function lockOrganization(tx: Prisma.TransactionClient, organizationId: string): Promise<void> {
  await tx.$queryRaw`SELECT 1 FROM organizations WHERE id = ${organizationId}::uuid FOR NO KEY UPDATE`
}
