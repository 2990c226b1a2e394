import type { SessionId } from '../../contract/kit/ids.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { quotaExceeded } from '../kit/errors.ts'
import { requireSession } from '../kit/session-scope.ts'

/** Maximum number of a user's pins in one organization. Each of the user's lists reads all of them. */
const MAX_PINS = 1000

/** Pins the session for the caller; may be repeated. Throws `not_found`, and `conflict` beyond MAX_PINS. */
export async function pinSession(deps: Deps, actor: Actor, id: SessionId): Promise<void> {
  const { organizationId, userId } = actor
  const session = await requireSession(deps, actor, id)
  const pinned = await deps.db.sessionPin.findMany({
    where: { userId, session: { organizationId } },
    select: { sessionId: true },
  })
  if (pinned.some(({ sessionId }) => sessionId === session.id)) return
  if (pinned.length >= MAX_PINS) {
    throw quotaExceeded(`You have ${MAX_PINS} pinned sessions, which is the limit; unpin one first`)
  }
  // Selects from the session's row, which may be gone by now. The lock prevents its deletion in between.
  const inserted = await deps.db.$executeRaw`
    INSERT INTO session_pins (user_id, session_id)
    SELECT ${userId}::uuid, id FROM sessions WHERE id = ${session.id}::uuid FOR KEY SHARE
    ON CONFLICT DO NOTHING`
  if (inserted === 0) await requireSession(deps, actor, id)
}

/** Unpins the session for the caller; may be repeated. Throws `not_found`. */
export async function unpinSession(deps: Deps, actor: Actor, id: SessionId): Promise<void> {
  const session = await requireSession(deps, actor, id)
  await deps.db.sessionPin.deleteMany({ where: { userId: actor.userId, sessionId: session.id } })
}
