import { api } from '../../service.ts'
import { bySequence } from '../session/conversation.ts'
import type { Generation } from './input.ts'
import type { Span } from './spans.ts'

/** Reads a model call with the messages that it got, after the events of its turn that came before it. */
export async function readGeneration(
  { id, sequence, session_id, context }: Generation,
  spans: Span[],
): Promise<Generation> {
  const turn_id = context.turn_id ?? undefined
  const earlier = spans.flatMap(({ events }) => events).sort(bySequence)
  let since_id = earlier.findLast((event) => (event.sequence ?? 0) < (sequence ?? 0))?.id
  for (;;) {
    const { data } = await api.events.list({ session_id, turn_id, types: ['llm.generation'], since_id, limit: 1 })
    const [found] = data
    if (found?.type === 'llm.generation' && found.id === id) return found
    since_id = found?.id
    if (since_id === undefined) throw new Error('This model call is no longer kept.')
  }
}
