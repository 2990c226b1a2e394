import type { InvitationId, OrganizationId } from '../../../contract/kit/ids.ts'
import type { Actor } from '../../kit/actor.ts'
import { audited } from '../../kit/audit/entry.ts'
import { forbidden, notFound } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'
import { requireMember } from '../organizations.ts'

/** Withdraws an invitation to any role. Throws `not_found`, and `forbidden` for a member. */
export async function withdrawInvitation(
  deps: Deps,
  actor: Actor,
  { org, invitation_id }: { org: OrganizationId; invitation_id: InvitationId },
): Promise<void> {
  const { role } = await requireMember(deps, actor, org)
  if (role === 'member') throw forbidden('Only owners and administrators of the organization may withdraw invitations')
  const told = { action: 'invitation.withdraw', target: invitation_id } as const
  await audited(deps, { ...actor, organizationId: org }, told, async (tx) => {
    const { count } = await tx.invitation.deleteMany({ where: { id: invitation_id, organizationId: org } })
    if (count === 0) throw notFound('Invitation')
  })
}
