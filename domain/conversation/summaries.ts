import type { Message } from '../../contract/messages.ts'
import type { StoredEvent } from '../events/log/present.ts'

type Row = Pick<StoredEvent, 'type' | 'turnId' | 'data'>

/** Introduces the summary to the model. */
const INTRODUCTION = 'Summary of the conversation so far, whose messages are no longer shown:'

/** Reports whether a message is the summary that replaces what was before. Only a completed compaction writes one. */
const isSummary = ({ role, metadata }: Pick<Message, 'role' | 'metadata'>): boolean =>
  role === 'agent' && metadata?.summary === true

/**
 * Returns rows without the requests for summaries in other turns, and without what a compaction that was cancelled or failed
 * has left. A turn that summarises reads its own request.
 */
export function withoutRequests<Placed extends Row>(rows: Placed[], turnId: string): Placed[] {
  const requests = rows.filter((row) => row.data.compaction !== undefined && row.turnId !== turnId)
  if (requests.length === 0) return rows
  const compacting = new Set(requests.map((row) => row.turnId))
  return rows.filter(
    ({ type, turnId, data }) =>
      !compacting.has(turnId) || (type === 'output.message.completed' && isSummary(data.message as Message)),
  )
}

/** Returns a conversation from its latest summary on, which becomes a user's message: models begin with one. */
export function fromSummary(messages: Message[]): Message[] {
  const index = messages.findLastIndex(isSummary)
  const summary = messages[index]
  if (summary === undefined) return messages
  const { id, session_id, sequence, created_at, content } = summary
  const said = { id, session_id, sequence, created_at, role: 'user' } as const
  return [{ ...said, content: [{ type: 'text', text: INTRODUCTION }, ...content] }, ...messages.slice(index + 1)]
}
