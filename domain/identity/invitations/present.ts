import type { Invitation } from '../../../contract/invitations.ts'
import type { Invitation as InvitationRow } from '../../../prisma/generated/client.ts'

export const presentInvitation = (row: InvitationRow): Invitation => ({
  id: row.id,
  role: row.role,
  created_by: row.createdBy,
  created_at: row.createdAt.toISOString(),
  expires_at: row.expiresAt.toISOString(),
})
