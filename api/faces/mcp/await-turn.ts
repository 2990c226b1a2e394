import { isTurnEnd, turnEndTypes } from '../../../contract/events.ts'
import type { Message } from '../../../contract/messages.ts'
import type { Turn } from '../../../contract/turns.ts'
import { readTurnAnswer } from '../../../domain/messages/wait.ts'
import { followTurn, openTurnCursor } from '../../../domain/turns/events.ts'
import type { AskedTurn } from './contract.ts'
import type { Face } from './face.ts'
import { PROGRESS_TYPES, type Progress, wordsOf } from './progress.ts'

type TurnAnswer = { turn: Turn; output: Message | null }

/**
 * Waits until a turn has ended or waits for its client, or until the signal aborts. Events only say when to look: the
 * record decides, so requests that were answered before do not count.
 */
export async function awaitTurn(
  { deps, actor }: Face,
  { session, turn }: AskedTurn,
  signal: AbortSignal,
  progress: Progress | undefined,
): Promise<TurnAnswer> {
  const read = () => readTurnAnswer(deps, actor, { sessionUuid: session, turnUuid: turn })
  const answer = await read()
  if (isSettled(answer) || signal.aborted) return answer
  const types = [...turnEndTypes, 'tool.call_requested' as const, ...(progress === undefined ? [] : PROGRESS_TYPES)]
  const cursor = await openTurnCursor(deps, actor, { sessionId: session, after: 0 }, turn, { types })
  for await (const events of followTurn(deps, cursor, { types }, signal)) {
    for (const event of events) {
      const words = progress && wordsOf(event)
      if (words !== undefined) progress?.report(words)
    }
    if (!events.some(({ type }) => type === 'tool.call_requested' || isTurnEnd(type))) continue
    const news = await read()
    if (isSettled(news)) return news
  }
  return read()
}

const isSettled = ({ turn }: TurnAnswer): boolean => turn.finished_at != null || turn.status === 'waiting'
