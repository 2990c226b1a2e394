import { z } from 'zod'
import { textUpTo } from '../../../contract/kit/common.ts'
import { AgentId, SessionId } from '../../../contract/kit/ids.ts'
import { MAX_MESSAGE_TEXT_BYTES, UserMessage } from '../../../contract/messages.ts'
import { requireActiveAgent } from '../../agents/check.ts'
import type { Actor } from '../../kit/actor.ts'
import { invalid } from '../../kit/errors.ts'
import { toId } from '../../kit/ids.ts'
import { checkParts } from '../../messages/check-parts.ts'
import type { Deps } from '../deps.ts'
import type { SessionMessageInput } from './inputs.ts'
import { type CheckedInput, parseInput } from './target.ts'

const place = { session_id: SessionId.nullish(), agent_id: AgentId.nullish() }
const WithText = z.object({
  ...place,
  message: textUpTo(MAX_MESSAGE_TEXT_BYTES).min(1, { error: 'must not be empty' }),
})
const WithContent = z.object({
  ...place,
  message: z
    .unknown()
    .refine((message) => typeof message === 'object' && message !== null, {
      error: 'must be a text, or an object with content',
    })
    .pipe(UserMessage),
})

const hasText = (input: unknown): boolean =>
  typeof input === 'object' && input !== null && 'message' in input && typeof input.message === 'string'

/**
 * Checks the input of a message that a schedule posts: `message` is a text, or `{content}` as in POST messages. Throws
 * `invalid` also for an archived agent.
 */
export async function checkSessionMessage(deps: Deps, actor: Actor, input: unknown): Promise<CheckedInput> {
  const { session_id, agent_id, message } = parseInput(hasText(input) ? WithText : WithContent, input)
  if (typeof message !== 'string') checkParts(message.content, 'target.input.message.content')
  const said = typeof message === 'string' ? message : { content: message.content }
  if (session_id != null && agent_id == null) {
    return checked({ session_id: toId('session', session_id), message: said }, session_id)
  }
  if (agent_id != null && session_id == null) {
    await requireActiveAgent(deps, actor, agent_id, 'target.input.agent_id')
    return checked({ agent_id: toId('agent', agent_id), message: said }, null)
  }
  throw invalid('target.input: must have either session_id, or agent_id for a new session each time')
}

const checked = (input: SessionMessageInput, sessionId: string | null): CheckedInput => ({
  input,
  headers: {},
  sessionId,
})
