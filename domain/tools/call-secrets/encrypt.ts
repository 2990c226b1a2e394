import type { CallSecretKind } from '../../../prisma/generated/client.ts'
import type { NewEvent } from '../../events/log/append.ts'
import { callStep } from '../../events/log/steps.ts'
import { placeOf } from '../../kit/secrets.ts'
import { estimateTokens } from '../../models/llm/token-estimate.ts'
import type { Deps } from '../deps.ts'
import { CALL_SECRETS } from './column.ts'
import { type Hidden, MASK } from './redact-call.ts'

type SecretLocation = { sessionId: string; turnId: string; iteration: number; kind: CallSecretKind }

/**
 * Adds the encrypted secrets that an event's calls omit, to be recorded in the same transaction. The event's data says
 * which calls have secrets. An event of calls without secrets stays the same.
 */
export function withSecrets(
  { secrets }: Deps,
  { sessionId, turnId, iteration, kind }: SecretLocation,
  event: NewEvent,
  calls: { id: string; hidden?: Hidden | undefined }[],
): NewEvent {
  const found = calls.flatMap(({ id, hidden }) => (hidden === undefined ? [] : [{ id, hidden }]))
  if (found.length === 0) return event
  const encrypted = found.map(({ id, hidden }) => {
    const step = callStep(iteration, id)
    const bytes = secrets.encrypt(JSON.stringify(hidden), placeOf(CALL_SECRETS, [sessionId, turnId, step, kind]))
    return { step, kind, value: Buffer.from(bytes).toString('base64') }
  })
  const secret_tokens = Object.fromEntries(found.map(({ id, hidden }) => [id, addedTokens(hidden)]))
  return { ...event, data: { ...event.data, secret_tokens }, secrets: encrypted }
}

function addedTokens(hidden: Hidden): number {
  const masks = Object.fromEntries(Object.keys(hidden).map((name) => [name, MASK]))
  return estimateTokens(JSON.stringify(hidden)) - estimateTokens(JSON.stringify(masks))
}
