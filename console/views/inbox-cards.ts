import type { RequestedCall, Session, Turn } from 'agent-session-client'

/** Session with the name of its agent. */
export type AskingSession = { session: Session; agent: string | undefined }
/** Turn that waits for a person. */
export type Waiting = { turn: Turn; place: AskingSession | undefined }

/** Returns a unique key of a call: a model may reuse an id in a later round. */
export const keyOf = ({ id, iterations }: Turn, call: RequestedCall): string => `${id} ${iterations} ${call.id}`

export const keysOf = (items: Waiting[]): Set<string> =>
  new Set(items.flatMap(({ turn }) => turn.pending_tool_calls.map((call) => keyOf(turn, call))))

/**
 * Returns the calls to show after a poll of the inbox. New calls are left out until the user asks for them. While a
 * pointer is over the list, finished calls keep their place, so that nothing moves under the pointer.
 */
export function standing(shown: Waiting[], found: Waiting[], isPointedAt: boolean): Waiting[] {
  if (found.length === 0 || shown.length === 0) return found
  if (isPointedAt) return shown
  const waiting = keysOf(found)
  const left = shown.flatMap(({ turn, place }) => {
    const pending_tool_calls = turn.pending_tool_calls.filter((call) => waiting.has(keyOf(turn, call)))
    return pending_tool_calls.length === 0 ? [] : [{ turn: { ...turn, pending_tool_calls }, place }]
  })
  return left.length === 0 ? found : left
}
