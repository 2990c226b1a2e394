import type { CompactSessionRequest, SessionCompaction } from '../../contract/compaction.ts'
import type { EventData } from '../../contract/events.ts'
import type { ModelId, SessionId } from '../../contract/kit/ids.ts'
import { requireModel } from '../agents/check.ts'
import { withLockedSession } from '../events/log/transaction.ts'
import type { Actor } from '../kit/actor.ts'
import { conflict, DomainError, noSession } from '../kit/errors.ts'
import { asUuid, newUuid, toId } from '../kit/ids.ts'
import type { Deps } from '../turns/deps.ts'
import { startTurnSoon } from '../turns/start.ts'
import { type AcceptedMessage, authorOf, presentInserted, toAccepted } from './create.ts'
import { insertMessage, type NewMessage } from './insert.ts'
import { waitForTurn } from './wait.ts'

const REQUEST = `Summarise this conversation, so that you can go on with it from the summary alone: the messages before will no longer be shown
to you. Keep the goals and wishes of the user, decisions and their reasons, facts, names, numbers and ids that may be needed again, what was
done with tools and what came of it, and what is still open. Call no tools. Answer with the summary only.`

/**
 * Begins a turn that summarises a session's conversation. Throws `not_found`, `invalid` for an unusable model, `conflict`
 * while a turn is unfinished, and `unprocessable` when there is nothing to summarise.
 */
export async function compactSession(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  { model_id, instructions }: CompactSessionRequest,
): Promise<AcceptedMessage> {
  const { organizationId } = actor
  const modelId = await requireModel(deps, actor, model_id, 'model_id')
  const turnId = asUuid<'turn'>(newUuid())
  const place = { organizationId, sessionId, turnId }
  const message = {
    ...newRequest(place, modelId, instructions),
    author: authorOf(actor),
    ancestors: undefined,
    outputSchema: '{}',
  }
  const isCapped = deps.limits.maxRunningTurns !== undefined
  const done = await withLockedSession(deps, place, async ({ db, agentId, publish }) => {
    const [state] = await db.$queryRaw<{ unfinished: string | null; hasAnswer: boolean }[]>`
      SELECT (SELECT id FROM turns WHERE session_id = ${sessionId}::uuid AND finished_at IS NULL LIMIT 1) AS unfinished,
        (SELECT (e.data #> '{message,metadata,summary}') IS NULL FROM events e
          WHERE e.session_id = ${sessionId}::uuid AND e.type = 'output.message.completed'
          ORDER BY e.sequence DESC LIMIT 1) AS "hasAnswer"`
    if (state?.unfinished) {
      throw conflict(
        `${toId('turn', state.unfinished)} is not finished; compact the session after its end`,
        'session_busy',
      )
    }
    if (!state?.hasAnswer) {
      throw new DomainError(
        'unprocessable',
        'There is nothing to summarise: nothing was answered since the last summary',
      )
    }
    const stored = { ...message, isCapped, traceparent: deps.tracing.traceparent() }
    const inserted = await insertMessage(db, stored, 'always')
    if (inserted === undefined) throw noSession()
    const events = presentInserted(deps, inserted)
    publish(turnId, events)
    return { events, agentId }
  })
  if (done === undefined) throw noSession()
  startTurnSoon(deps, { ...place, agentId: done.agentId }, 'early')
  return toAccepted(place, done.events)
}

/** Makes the message of the turn. `compaction` marks it in the record, and `compact` marks its turn. */
function newRequest(
  place: Pick<NewMessage, 'organizationId' | 'sessionId' | 'turnId'>,
  modelId: ModelId | null | undefined,
  instructions: string | null | undefined,
): Omit<NewMessage, 'author' | 'traceparent' | 'isCapped' | 'ancestors' | 'outputSchema'> {
  const text = instructions ? `${REQUEST}\n\nBesides:\n${instructions}` : REQUEST
  const content = [{ type: 'text' as const, text }]
  const message = { id: toId('message', place.turnId), role: 'user', content }
  const controls = { model_id: modelId && toId('model', modelId), compact: true }
  return { ...place, content, controls: JSON.stringify(controls), data: { message, compaction: true } }
}

/** Waits until the turn of a compaction has ended, or the signal aborts. */
export async function waitForCompaction(
  deps: Deps,
  actor: Actor,
  accepted: AcceptedMessage,
  signal: AbortSignal,
): Promise<SessionCompaction & { hasEnded: boolean }> {
  const { turn, output, hasEnded } = await waitForTurn(deps, actor, accepted, signal)
  if (turn.status !== 'completed') return { turn, summary: null, dropped: null, hasEnded }
  const event = await deps.db.event.findFirst({ where: { turnId: accepted.turnUuid, type: 'session.compacted' } })
  // Only this service writes such events.
  const data = event?.data as EventData<'session.compacted'> | undefined
  return { turn, summary: output, dropped: data?.dropped ?? null, hasEnded }
}
