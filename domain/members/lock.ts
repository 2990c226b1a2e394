import type { Prisma } from '../../prisma/generated/client.ts'

/**
 * Lets changes of an organization's members and invitations take turns until the transaction ends: so it keeps an owner,
 * and nobody uses a role that is being taken away.
 */
export async function lockMembers(tx: Prisma.TransactionClient, organizationId: string): Promise<void> {
  await tx.$queryRaw`SELECT 1 FROM organizations WHERE id = ${organizationId}::uuid FOR NO KEY UPDATE`
}
