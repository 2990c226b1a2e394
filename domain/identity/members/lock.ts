import type { Prisma } from '../../../prisma/generated/client.ts'
import { lockOrganization } from '../../kit/lock-organization.ts'

/**
 * Serializes changes of an organization's members and invitations until the transaction ends, so that the organization
 * keeps an owner, and nobody uses a role that is being taken away.
 */
export const lockMembers = (tx: Prisma.TransactionClient, organizationId: string): Promise<void> =>
  lockOrganization(tx, organizationId)
