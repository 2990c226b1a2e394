import type { Prisma } from '../../../prisma/generated/client.ts'
import { lockOrganization } from '../../kit/lock-organization.ts'

/**
 * Lets changes of an organization's members and invitations take turns until the transaction ends: so it keeps an owner,
 * and nobody uses a role that is being taken away.
 */
export const lockMembers = (tx: Prisma.TransactionClient, organizationId: string): Promise<void> =>
  lockOrganization(tx, organizationId)
