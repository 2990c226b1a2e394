import type { CallSecretKind } from '../../prisma/generated/client.ts'
import type { StoredEvent } from '../events/present.ts'
import { callStep, parseStep } from '../events/steps.ts'

/** Secrets of one call: of its arguments or of its result. `tokens` is about how many more they take than their masks. */
export type CallSecret = { turnId: string; step: string; kind: CallSecretKind; callId: string; tokens: number }

/** Secrets in the messages of a conversation, by the id of the message. */
export type MessageSecrets = ReadonlyMap<string, readonly CallSecret[]>

/** Returns the secrets that a message's event leaves out. Only `withSecrets` writes `secret_tokens`. */
export function secretsOf({ type, turnId, step, data }: Pick<StoredEvent, 'type' | 'turnId' | 'step' | 'data'>) {
  const tokens = Object.entries((data.secret_tokens ?? {}) as Record<string, number>)
  const iteration = parseStep(step)?.iteration ?? 0
  return tokens.map(
    ([callId, count]): CallSecret => ({
      turnId,
      step: callStep(iteration, callId),
      kind: type === 'tool.completed' ? 'result' : 'arguments',
      callId,
      tokens: count,
    }),
  )
}

/** Returns about how many more tokens a message has than its event shows. */
export const hiddenTokens = (secrets: MessageSecrets, messageId: string): number =>
  (secrets.get(messageId) ?? []).reduce((sum, { tokens }) => sum + tokens, 0)
