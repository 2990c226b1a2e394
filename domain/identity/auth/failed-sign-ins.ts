import { warnRarely } from '../../../lib/warn-rarely.ts'
import type { Origin } from '../../kit/actor.ts'
import { auditUser } from '../../kit/audit/entry.ts'
import type { Deps } from '../deps.ts'

/** Entries about one user's failed sign-ins within a minute. More are guesses from many addresses. */
const MAX_A_MINUTE = 10

/** Writes a failed sign-in of a known user into the audit logs of the user's organizations. Never rejects. */
export async function noteFailedSignIn(deps: Deps, userId: string, origin: Origin): Promise<void> {
  try {
    const [recent] = await deps.db.$queryRaw<{ count: number }[]>`
      SELECT count(*)::int FROM audit_entries
      WHERE organization_id = (SELECT organization_id FROM members WHERE user_id = ${userId}::uuid LIMIT 1)
        AND target_id = ${userId}::uuid AND action = 'user.sign_in_failed'
        AND created_at > now() - interval '1 minute'`
    if ((recent?.count ?? 0) >= MAX_A_MINUTE) return
    await auditUser(deps.db, { userId, origin, isKnown: false }, { action: 'user.sign_in_failed' })
  } catch (error) {
    warnRarely(deps.log, { err: (error as Error).message }, 'a failed sign-in is not in the audit log')
  }
}
