import { ApiError, type Event, type Session, type Turn } from 'agent-session-client'
import { useEvery, useLoad } from '../../load.ts'
import type { RunPlace } from '../../parts/compare-link.ts'
import { isUnfinished } from '../../parts/run-time.ts'
import { api, readAnywhere } from '../../service.ts'
import { useRef } from '../../ui.ts'
import { type Call, type Conversation, createConversation, NOT_SHOWN, textOf } from '../session/conversation.ts'

/** Interval between reads of a run that has not ended. Two streams would take connections from other tabs. */
const LOOK_MS = 3000
const PAGE = 500
const LEFT_OUT: Event['type'][] = [...NOT_SHOWN, 'output.message.delta', 'reason.thinking.delta']

/** What a run did, as its events say. */
export type Told = { message: string; answer: string; calls: Call[]; models: string[] }
export type Run = { turn: Turn | undefined; session: Session | undefined; told: Told; error: unknown }

const NOTHING: Told = { message: '', answer: '', calls: [], models: [] }
const MISSING = new Error('There is no such run, or it has been deleted.')

/** Events that have been read. */
type Read = { conversation: Conversation; models: Set<string>; last: string | undefined }

/**
 * Reads a run, again and again until its end. If it `leads`, its organization is shown. Only one of two runs may lead, or
 * two organizations would take turns.
 */
export function useRun(place: RunPlace, leads: boolean): Run {
  const { sessionId, turnId } = place
  const read = useRef<Read>({ conversation: createConversation(), models: new Set(), last: undefined }).current
  const readSession = () => api.sessions.get({ session_id: sessionId })
  const { value, error, refresh } = useLoad(async () => {
    const [session, turn] = await Promise.all([
      leads ? readAnywhere(`/v1/sessions/${encodeURIComponent(sessionId)}`, readSession) : readSession(),
      api.turns.get({ session_id: sessionId, turn_id: turnId }),
    ])
    // After the turn, so that the events of an ended one are complete.
    await readEvents(place, read)
    return { turn, session, told: toldOf(read) }
  }, [sessionId, turnId])
  useEvery(LOOK_MS, () => value !== undefined && isUnfinished(value.turn) && refresh())
  const isMissing = error instanceof ApiError && (error.status === 404 || error.status === 400)
  return {
    turn: value?.turn,
    session: value?.session,
    told: value?.told ?? NOTHING,
    error: isMissing ? MISSING : error,
  }
}

/** Reads the events that have come since the last time. */
async function readEvents({ sessionId, turnId }: RunPlace, read: Read): Promise<void> {
  for (;;) {
    const { data } = await api.events.list({
      session_id: sessionId,
      turn_id: turnId,
      exclude: LEFT_OUT,
      since_id: read.last,
      limit: PAGE,
    })
    for (const event of data) {
      if (event.type === 'reason.started' && event.data.metadata) read.models.add(event.data.metadata.model)
      read.conversation.take(event)
      read.last = event.id
    }
    if (data.length < PAGE) return
  }
}

function toldOf({ conversation, models }: Read): Told {
  const [turn] = conversation.turns
  if (turn === undefined) return NOTHING
  const answers = turn.parts.flatMap((part) => (part.type === 'answer' && part.text !== '' ? [part.text] : []))
  const calls = turn.parts.flatMap((part) => (part.type === 'calls' ? part.calls : []))
  return {
    message: textOf(turn.input?.content ?? []),
    answer: answers.join('\n\n'),
    calls: [...calls],
    models: [...models],
  }
}
