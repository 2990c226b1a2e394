import type { OrganizationId } from '../../../contract/kit/ids.ts'
import type { Member } from '../../../contract/members.ts'
import type { Actor } from '../../kit/actor.ts'
import { type PageStart, type Pages, pages } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import { requireMember } from '../organizations.ts'
import { type MemberRow, presentMember } from './present.ts'
import { readMembers } from './select.ts'

const MEMBERS_AT_ONCE = 100

/** Lists an organization's members, the newest first. Throws `not_found`. */
export async function listMembers(
  deps: Deps,
  actor: Actor,
  organizationId: OrganizationId,
  part: { limit: number; offset: number },
): Promise<Pages<Member>> {
  await requireMember(deps, actor, organizationId)
  return pages({
    ...part,
    atOnce: MEMBERS_AT_ONCE,
    read: (place: PageStart<MemberRow>) => readMembers(deps, organizationId, place),
    present: (rows) => rows.map(presentMember),
  })
}
