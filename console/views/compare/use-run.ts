import type { Event, Session, Turn } from 'agent-session-client'
import { isNotFound, useEvery, useLoad } from '../../load.ts'
import type { RunPlace } from '../../parts/compare-link.ts'
import { isUnfinished } from '../../parts/run-time.ts'
import { api, sessionOf } from '../../service.ts'
import { useEffect, useState } from '../../ui.ts'
import { type Call, createConversation, NOT_SHOWN, textOf } from '../session/conversation.ts'

/** Interval between reads of a run that has not ended, and of drawing its events. */
const LOOK_MS = 3000
const DRAW_MS = 200
const LEFT_OUT: Event['type'][] = [...NOT_SHOWN, 'output.message.delta', 'reason.thinking.delta']

/** What a run did, as its events say. */
export type Told = { message: string; answer: string; calls: Call[]; models: string[] }
export type Run = { turn: Turn | undefined; session: Session | undefined; told: Told; error: unknown }

const NOTHING: Told = { message: '', answer: '', calls: [], models: [] }
const MISSING = new Error('There is no such run, or it has been deleted.')

/** Reads a run and follows it to its end. */
export function useRun({ sessionId, turnId }: RunPlace): Run {
  const { value, error, refresh } = useLoad(async () => {
    const [turn, session] = await Promise.all([
      api.turns.get({ session_id: sessionId, turn_id: turnId }),
      api.sessions.get({ session_id: sessionId }),
    ])
    return { turn, session }
  }, [sessionId, turnId])
  const isRunning = value !== undefined && isUnfinished(value.turn)
  useEvery(LOOK_MS, () => isRunning && refresh())
  const told = useTold({ sessionId, turnId }, value !== undefined)
  return { turn: value?.turn, session: value?.session, told, error: isNotFound(error) ? MISSING : error }
}

function useTold({ sessionId, turnId }: RunPlace, isThere: boolean): Told {
  const [told, setTold] = useState(NOTHING)
  useEffect(() => {
    if (!isThere) return
    const closed = new AbortController()
    const { signal } = closed
    const models = new Set<string>()
    const conversation = createConversation()
    let timer: ReturnType<typeof setTimeout> | undefined
    const draw = () => {
      timer = undefined
      setTold({ ...toldOf(conversation.turns[0]), models: [...models] })
    }
    const read = async () => {
      for await (const event of sessionOf(sessionId).events({ turn_id: turnId, exclude: LEFT_OUT, signal })) {
        if (event.type === 'reason.started' && event.data.metadata) models.add(event.data.metadata.model)
        conversation.take(event)
        timer ??= setTimeout(draw, DRAW_MS)
      }
    }
    // What has come so far stays; the error of the turn itself is shown.
    read().catch(() => {})
    return () => {
      closed.abort()
      clearTimeout(timer)
    }
  }, [sessionId, turnId, isThere])
  return told
}

function toldOf(turn: ReturnType<typeof createConversation>['turns'][number] | undefined): Omit<Told, 'models'> {
  if (turn === undefined) return NOTHING
  const answers = turn.parts.flatMap((part) => (part.type === 'answer' && part.text !== '' ? [part.text] : []))
  const calls = turn.parts.flatMap((part) => (part.type === 'calls' ? part.calls : []))
  return { message: textOf(turn.input?.content ?? []), answer: answers.join('\n\n'), calls }
}
