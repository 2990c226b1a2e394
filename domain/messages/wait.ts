import { turnEndTypes } from '../../contract/events.ts'
import type { Message } from '../../contract/messages.ts'
import type { Turn } from '../../contract/turns.ts'
import { presentMessage, type StoredEvent } from '../events/log/present.ts'
import type { Actor } from '../kit/actor.ts'
import type { Deps } from '../turns/deps.ts'
import { followTurn, type TurnCursor } from '../turns/events.ts'
import { getTurn } from '../turns/read.ts'
import type { AcceptedMessage } from './create.ts'

/** Returns the cursor of an accepted message's turn, after its input.message. */
export const cursorOf = ({ sessionUuid, turnUuid, sequence }: AcceptedMessage): TurnCursor => ({
  sessionId: sessionUuid,
  turnId: turnUuid,
  after: sequence - 1,
})

export type WaitedTurn = { message: Message; turn: Turn; output: Message | null; hasEnded: boolean }

/**
 * Waits for a turn's end until the signal aborts. Returns early if the turn asks its client, who may be the waiting
 * caller. A caller's disconnection does not affect the turn.
 */
export async function waitForTurn(
  deps: Deps,
  actor: Actor,
  accepted: AcceptedMessage,
  signal: AbortSignal,
): Promise<WaitedTurn> {
  const types = [...turnEndTypes, 'tool.call_requested'] as const
  for await (const _news of followTurn(deps, cursorOf(accepted), { types }, signal)) break
  const turn = await getTurn(deps, actor, accepted.sessionUuid, accepted.turnUuid)
  const hasEnded = turn.finished_at !== null
  return { message: accepted.message, turn, output: hasEnded ? await lastOutput(deps, accepted) : null, hasEnded }
}

type TurnUuids = Pick<AcceptedMessage, 'sessionUuid' | 'turnUuid'>

/** Returns a turn, finished or not, with its last agent message so far. Throws `not_found`. */
export async function readTurnAnswer(
  deps: Deps,
  actor: Actor,
  place: TurnUuids,
): Promise<{ turn: Turn; output: Message | null }> {
  const turn = await getTurn(deps, actor, place.sessionUuid, place.turnUuid)
  return { turn, output: await lastOutput(deps, place) }
}

/** Returns the turn's last agent message, or null if it has none. */
async function lastOutput(deps: Deps, { sessionUuid, turnUuid }: TurnUuids): Promise<Message | null> {
  const [row] = await deps.db.$queryRaw<Omit<StoredEvent, 'sessionId'>[]>`
    SELECT sequence, type, ts, turn_id AS "turnId", step, exec_id AS "execId", data FROM events
    WHERE turn_id = ${turnUuid}::uuid AND type = 'output.message.completed' ORDER BY sequence DESC LIMIT 1`
  return row ? presentMessage({ ...row, sessionId: sessionUuid }) : null
}
