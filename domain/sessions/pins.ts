import type { SessionId } from '../../contract/ids.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { invalid } from '../errors.ts'
import { requireSession } from './read.ts'

/** In one organization: every list that the user asks for there looks at all of them. */
const MAX_PINS = 1000

/** Pins the session for the caller. May be repeated. Throws `not_found`, and `invalid` for one pin too many. */
export async function pinSession(deps: Deps, actor: Actor, id: SessionId): Promise<void> {
  const { organizationId, userId } = actor
  const session = await requireSession(deps, actor, id)
  const pinned = await deps.db.sessionPin.findMany({
    where: { userId, session: { organizationId } },
    select: { sessionId: true },
  })
  if (pinned.some(({ sessionId }) => sessionId === session.id)) return
  if (pinned.length >= MAX_PINS) throw invalid(`You have ${MAX_PINS} pinned sessions; unpin one of them first`)
  // From its row, which may be gone by now; the lock sees to it that it does not go in between.
  const inserted = await deps.db.$executeRaw`
    INSERT INTO session_pins (user_id, session_id)
    SELECT ${userId}::uuid, id FROM sessions WHERE id = ${session.id}::uuid FOR KEY SHARE
    ON CONFLICT DO NOTHING`
  if (inserted === 0) await requireSession(deps, actor, id)
}

/** May be repeated. Throws `not_found`. */
export async function unpinSession(deps: Deps, actor: Actor, id: SessionId): Promise<void> {
  const session = await requireSession(deps, actor, id)
  await deps.db.sessionPin.deleteMany({ where: { userId: actor.userId, sessionId: session.id } })
}
