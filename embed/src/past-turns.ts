import type { AnswerPart, ContentPart, Message, Turn } from 'agent-session-client'

/** Turn of a session, with the parts of its answer if it has ended. */
export type PastTurn = {
  turnId: string
  content: ContentPart[]
  parts: AnswerPart[]
  state: 'completed' | 'cancelled' | 'unfinished' | { failure: string }
}

/** Puts messages into their turns. */
export function turnsOf(messages: Message[], known: Turn[]): PastTurn[] {
  const stateById = new Map(known.map((turn) => [turn.id, stateOf(turn)]))
  const turns = new Map<string, PastTurn & { step: number; names: Map<string, string> }>()
  let isRecent = known.length === 0
  for (const message of messages) {
    const turnId = message.turn_id ?? message.id.replace('message_', 'turn_')
    isRecent ||= stateById.has(turnId)
    // Without a state, a turn is either newer than the list of turns or older than its oldest.
    const state = stateById.get(turnId) ?? (isRecent ? 'unfinished' : 'completed')
    const turn = turns.get(turnId) ?? { turnId, content: [], parts: [], state, step: 0, names: new Map() }
    turns.set(turnId, turn)
    // A message that joined a running turn is shown with its first one.
    if (message.role === 'user') turn.content = [...turn.content, ...message.content]
    else if (state !== 'unfinished') addTo(turn, message)
  }
  return [...turns.values()]
}

function stateOf({ status, error }: Turn): PastTurn['state'] {
  if (status === 'failed') return { failure: error ?? 'The turn failed.' }
  return status === 'completed' || status === 'cancelled' ? status : 'unfinished'
}

type Building = PastTurn & { step: number; names: Map<string, string> }

function addTo(turn: Building, message: Message): void {
  const { parts, names } = turn
  if (message.role === 'agent') {
    for (const part of message.content) if (part.type === 'tool_call') names.set(part.id, part.name)
    parts.push({ type: 'message', step: turn.step++, message })
  }
  if (message.role !== 'tool_result') return
  const [first, ...rest] = message.content
  if (first?.type !== 'tool_result') return
  const { tool_call_id: id, result, error } = first
  const text = result === undefined || result === null ? [] : [{ type: 'text' as const, text: JSON.stringify(result) }]
  const outcome = { status: error ? 'error' : 'success', result: [...text, ...rest], error: error ?? undefined }
  parts.push({
    type: 'tool',
    step: turn.step - 1,
    id,
    name: names.get(id) ?? 'tool',
    displayName: undefined,
    ...outcome,
  })
}
