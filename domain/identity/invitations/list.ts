import type { Invitation } from '../../../contract/invitations.ts'
import type { OrganizationId } from '../../../contract/kit/ids.ts'
import type { Invitation as InvitationRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { forbidden } from '../../kit/errors.ts'
import { type PageStart, type Pages, pages } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import { requireMember } from '../organizations.ts'
import { presentInvitation } from './present.ts'

const INVITATIONS_AT_ONCE = 100

/** Lists an organization's pending invitations, the newest first. Throws `not_found`, and `forbidden` for a member. */
export async function listInvitations(
  deps: Deps,
  actor: Actor,
  organizationId: OrganizationId,
  part: { limit: number; offset: number },
): Promise<Pages<Invitation>> {
  const { role } = await requireMember(deps, actor, organizationId)
  if (role === 'member') throw forbidden('Only owners and administrators of the organization may see its invitations')
  return pages({
    ...part,
    atOnce: INVITATIONS_AT_ONCE,
    read: async ({ after, skip, take }: PageStart<InvitationRow>) => {
      const rows = await deps.db.invitation.findMany({
        where: { organizationId, id: { lt: after?.id }, expiresAt: { gt: new Date() } },
        orderBy: { id: 'desc' },
        skip,
        take,
      })
      return { rows, hasMore: rows.length === take }
    },
    present: (rows) => rows.map(presentInvitation),
  })
}
