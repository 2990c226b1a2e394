import type { CallSecretKind } from '../../../prisma/generated/client.ts'
import { callStep } from '../../events/log/steps.ts'

/**
 * Secrets of one call: of its arguments or of its result. `tokens` is about how many more tokens they have than their
 * masks.
 */
export type CallSecret = { turnId: string; step: string; kind: CallSecretKind; callId: string; tokens: number }

/** Secrets in the messages of a conversation, by the id of the message. */
export type MessageSecrets = ReadonlyMap<string, readonly CallSecret[]>

/** Returns the secrets that an event of a step's calls, or of a result, omits. `tokens` is its `secret_tokens`. */
export const secretsOf = (
  turnId: string,
  iteration: number,
  kind: CallSecretKind,
  tokens: Record<string, number>,
): CallSecret[] =>
  Object.entries(tokens).map(([callId, count]) => ({
    turnId,
    step: callStep(iteration, callId),
    kind,
    callId,
    tokens: count,
  }))

/** Estimates the tokens of a message that its event omits. */
export const hiddenTokens = (secrets: MessageSecrets, messageId: string): number =>
  (secrets.get(messageId) ?? []).reduce((sum, { tokens }) => sum + tokens, 0)
