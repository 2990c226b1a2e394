import type { Message } from '../../../contract/messages.ts'
import type { NewEvent } from '../../events/log/append.ts'
import { toId } from '../../kit/ids.ts'
import { ModelError } from '../../models/llm/model.ts'
import type { RedactedCall } from '../../tools/call-secrets/redact-call.ts'
import type { Answer } from './answer.ts'
import { leftOutputTokens } from './reached-cap.ts'
import type { TurnContext } from './turn-context.ts'

/** Limit on the tokens of a summary, thinking included. */
const SUMMARY_TOKENS = 16_384
/** Limit on its length, for providers that do not keep to the limit of tokens. */
const MAX_SUMMARY_LENGTH = 100_000

/** Returns the limit of output tokens for a model call of the turn. */
export const outputTokensFor = (context: TurnContext): number | undefined => {
  const left = leftOutputTokens(context)
  return context.compacts ? Math.min(left ?? SUMMARY_TOKENS, SUMMARY_TOKENS) : left
}

/**
 * Returns an answer as a summary, without the calls that the model was asked not to make. Throws `ModelError` for an
 * answer that cannot replace a conversation.
 */
export function asSummary<Streamed extends Omit<Answer, 'toolCalls'> & { toolCalls: RedactedCall[] }>(
  answer: Streamed,
): Streamed {
  const problem =
    answer.text.trim() === ''
      ? 'The model gave no summary.'
      : answer.text.length > MAX_SUMMARY_LENGTH
        ? `The summary has ${answer.text.length} characters; at most ${MAX_SUMMARY_LENGTH} replace a conversation.`
        : undefined
  if (problem === undefined) return { ...answer, toolCalls: [] }
  const error = new ModelError(problem, { retryable: true })
  error.hasAnswered = true
  throw error
}

/** Returns the event of a compaction, which names what the summary replaces: all messages but the request. */
export function compactedEvent({ turnId, messages }: TurnContext, answered: NewEvent[]): NewEvent {
  const summary = answered.find(({ type }) => type === 'output.message.completed')?.data.message as Message
  const dropped = messages.slice(0, -1)
  return {
    type: 'session.compacted',
    data: {
      turn_id: toId('turn', turnId),
      message_id: summary.id,
      dropped: {
        messages: dropped.length,
        first_message_id: dropped[0]?.id ?? null,
        last_message_id: dropped.at(-1)?.id ?? null,
      },
    },
  }
}
