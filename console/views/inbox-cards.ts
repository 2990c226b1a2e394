import type { RequestedCall, Session, Turn } from 'agent-session-client'

/** Session with the name of its agent. */
export type Place = { session: Session; agent: string | undefined }
/** Turn that waits for a person. */
export type Waiting = { turn: Turn; place: Place | undefined }

/** Names a call for all time: a model may use an id again in a later round. */
export const keyOf = ({ id, iterations }: Turn, call: RequestedCall): string => `${id} ${iterations} ${call.id}`

export const keysOf = (items: Waiting[]): Set<string> =>
  new Set(items.flatMap(({ turn }) => turn.pending_tool_calls.map((call) => keyOf(turn, call))))

/**
 * Returns what is shown of an inbox that is looked at again. New calls are left out until somebody asks for them, and
 * those that are over stay in their place while a pointer is there: nothing may come under it.
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
