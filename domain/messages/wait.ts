import { type EventType, isTurnEnd, turnEndTypes } from '../../contract/events.ts'
import type { Message } from '../../contract/messages.ts'
import type { Turn } from '../../contract/turns.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { presentMessage, type StoredEvent } from '../events/present.ts'
import type { EventLine } from '../events/read.ts'
import { followSession } from '../sessions/events.ts'
import { getTurn } from '../turns/read.ts'
import type { AcceptedMessage } from './create.ts'

type FollowTurn = { types?: readonly EventType[]; onOverflow?: () => void }

/**
 * Yields the events of one turn, from its input.message to its end, then returns 'end'. `types` must contain those that
 * end a turn.
 */
export async function* followTurn(
  deps: Deps,
  accepted: AcceptedMessage,
  signal: AbortSignal,
  { types, onOverflow }: FollowTurn = {},
): AsyncGenerator<EventLine[], string> {
  const { sessionUuid, turnUuid, sequence } = accepted
  const cursor = { sessionId: sessionUuid, after: sequence - 1 }
  const events = followSession(deps, cursor, { types, turnId: turnUuid }, signal, onOverflow)
  try {
    for (;;) {
      const next = await events.next()
      if (next.done) return next.value
      const end = next.value.findIndex((event) => isTurnEnd(event.type))
      if (end >= 0) {
        yield next.value.slice(0, end + 1)
        return 'end'
      }
      yield next.value
    }
  } finally {
    await events.return('aborted')
  }
}

export type WaitedTurn = { message: Message; turn: Turn; output: Message | null; hasEnded: boolean }

/**
 * Waits for a turn's end until the signal aborts. Returns early for a turn that asks its client, because the caller who
 * waits may be the one to answer. A caller that disconnects changes nothing for the turn.
 */
export async function waitForTurn(
  deps: Deps,
  actor: Actor,
  accepted: AcceptedMessage,
  signal: AbortSignal,
): Promise<WaitedTurn> {
  const types = [...turnEndTypes, 'tool.call_requested'] as const
  for await (const _news of followTurn(deps, accepted, signal, { types })) break
  const turn = await getTurn(deps, actor, accepted.sessionUuid, accepted.turnUuid)
  const hasEnded = turn.finished_at !== null
  return { message: accepted.message, turn, output: hasEnded ? await lastOutput(deps, accepted) : null, hasEnded }
}

/** Returns the turn's last agent message, or null when it has none. */
async function lastOutput(deps: Deps, { sessionUuid, turnUuid }: AcceptedMessage): Promise<Message | null> {
  const [row] = await deps.db.$queryRaw<Omit<StoredEvent, 'sessionId'>[]>`
    SELECT sequence, type, ts, turn_id AS "turnId", step, exec_id AS "execId", data FROM events
    WHERE turn_id = ${turnUuid}::uuid AND type = 'output.message.completed' ORDER BY sequence DESC LIMIT 1`
  return row ? presentMessage({ ...row, sessionId: sessionUuid }) : null
}
