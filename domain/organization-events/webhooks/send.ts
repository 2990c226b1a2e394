import { createGuardedFetch } from '../../../lib/outgoing/guarded-fetch.ts'
import { OutgoingError } from '../../../lib/outgoing/outgoing-error.ts'
import { cutAt } from '../../../lib/truncate.ts'
import type { Webhook as WebhookRow } from '../../../prisma/generated/client.ts'
import { toId } from '../../kit/ids.ts'
import { UnreadableSecret } from '../../kit/secrets.ts'
import { readBeginning } from '../../schedules/targets/beginning.ts'
import { retryAfterMs } from './back-off.ts'
import type { Deps } from './deps.ts'
import { readSecrets, signatureOf } from './secrets.ts'

/** Time from the call until the head of the answer has arrived. */
const TIMEOUT_MS = 15_000
const MAX_ANSWER_BYTES = 64 * 1024
/** Length of a refusal's text that is kept. */
const MAX_QUOTED = 500
const GONE = 410
export const GONE_SENTENCE = 'The receiver answered 410 Gone.'

export type Sending = {
  webhook: Pick<WebhookRow, 'id' | 'url' | 'secrets'>
  /** Whether the former secret signs as well. */
  hasFormerSecret: boolean
  deliveryId: string
  /** Time of the attempt, in seconds. */
  timestamp: number
  body: string
}

/** Outcome of an attempt. Without an `error` it was delivered. `isGone`: the receiver wants no more. */
export type Sent = {
  httpStatus: number | null
  error: string | null
  retryAfterMs?: number | undefined
  isGone?: boolean
}

/**
 * Sends a signed request. Delivered with a status of 2xx. Only the beginning of an answer is read, and a redirect is not
 * followed. Throws the signal's reason.
 */
export async function send(deps: Deps, sending: Sending, signal: AbortSignal, timeoutMs = TIMEOUT_MS): Promise<Sent> {
  const guarded = createGuardedFetch({
    ...deps.outgoing,
    traceparent: deps.tracing.traceparent,
    headersTimeoutMs: timeoutMs,
    idleTimeoutMs: timeoutMs,
    maxBytes: MAX_ANSWER_BYTES,
  })
  try {
    const { url } = sending.webhook
    const headers = headersOf(deps, sending)
    const answer = await deps.tracing.send({ method: 'POST' }, () =>
      guarded.fetch(url, { method: 'POST', headers, body: sending.body, signal }),
    )
    const text = await readBeginning(answer.body, {})
    return outcomeOf(answer, text)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof OutgoingError) return { httpStatus: null, error: error.message }
    if (error instanceof UnreadableSecret && error.isDamaged) {
      return { httpStatus: null, error: 'The stored secret is damaged and cannot be read; make a new webhook.' }
    }
    throw error
  } finally {
    // Also ends a body that goes on for ever.
    await guarded.close()
  }
}

function headersOf(deps: Deps, { webhook, hasFormerSecret, deliveryId, timestamp, body }: Sending) {
  const { current, former } = readSecrets(deps, webhook)
  const id = toId('delivery', deliveryId)
  const secrets = { current, former: hasFormerSecret ? former : undefined }
  return {
    'content-type': 'application/json',
    'user-agent': 'agent-session-service (webhook)',
    'webhook-id': id,
    'webhook-timestamp': `${timestamp}`,
    'webhook-signature': signatureOf(secrets, { id, timestamp, body }),
  }
}

function outcomeOf({ status, headers }: Response, text: string): Sent {
  if (status >= 200 && status < 300) return { httpStatus: status, error: null }
  if (status === GONE) return { httpStatus: status, error: GONE_SENTENCE, isGone: true }
  const quoted = cutAt(text.trim(), MAX_QUOTED)
  return {
    httpStatus: status,
    error: `The receiver answered with the status ${status}${quoted === '' ? '.' : `: ${quoted}`}`,
    retryAfterMs: retryAfterMs(headers),
  }
}
