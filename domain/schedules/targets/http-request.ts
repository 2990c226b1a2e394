import type { RetryPolicy } from '../../../contract/schedules.ts'
import { createGuardedFetch } from '../../../lib/outgoing/guarded-fetch.ts'
import { OutgoingError, type OutgoingReason } from '../../../lib/outgoing/outgoing-error.ts'
import { resolveSecrets, SecretRefused } from '../../kit/organization-secrets/resolve.ts'
import { UnreadableSecret } from '../../kit/secrets.ts'
import type { Deps } from '../deps.ts'
import { readBeginning } from './beginning.ts'
import { type BegunExecution, lostAttempts } from './begun-execution.ts'
import { readHeaders } from './headers.ts'
import type { HttpRequestInput } from './inputs.ts'
import type { TargetResult } from './result.ts'

const TIMEOUT_MS = 60_000
const MAX_ANSWER_BYTES = 1024 * 1024

/** Methods that may be sent twice with the same effect (RFC 9110, section 9.2.2). */
const IDEMPOTENT = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']
const TEMPORARY: OutgoingReason[] = ['unknown_host', 'unreachable', 'unreadable', 'timeout']
/** Statuses of failures that may be temporary. */
const isTemporaryStatus = (status: number): boolean => status === 408 || status === 429 || status >= 500

/**
 * Sends the request of an execution, with the execution's id as its Idempotency-Key. Succeeds with a status of 2xx, and
 * does not follow redirects. If a worker died during the request, it is sent again if its method is idempotent or the
 * schedule has a retry policy. Otherwise the execution fails, because the request may have arrived.
 */
export async function sendRequest(deps: Deps, execution: BegunExecution, signal: AbortSignal): Promise<TargetResult> {
  const { schedule } = execution
  // Parsed when it was written.
  const input = schedule.targetInput as HttpRequestInput
  if (lostAttempts(execution) > 0 && !mayBeSentAgain(input, execution)) {
    return failed(`A worker stopped during the ${input.method}, so it is not known whether the request arrived.`)
  }
  const guarded = createGuardedFetch({
    ...deps.outgoing,
    traceparent: deps.tracing.traceparent,
    headersTimeoutMs: TIMEOUT_MS,
    idleTimeoutMs: TIMEOUT_MS,
    maxBytes: MAX_ANSWER_BYTES,
  })
  try {
    const { url, method } = input
    const stored = readHeaders(deps, schedule)
    const destination = { organizationId: schedule.organizationId, url }
    const { fill, values } = await resolveSecrets(deps, destination, Object.values(stored))
    const sent = Object.fromEntries(Object.entries(stored).map(([name, value]) => [name, fill(value)]))
    const headers = headersOf(input, sent, execution.id)
    const { status, body } = await deps.tracing.send({ method }, () =>
      guarded.fetch(url, { method, headers, body: bodyOf(input), signal }),
    )
    const answered = { httpStatus: status, answer: await readBeginning(body, sent, Object.values(values)) }
    if (status >= 200 && status < 300) return { outcome: 'completed', answered }
    return { ...failed(`The server answered with the status ${status}.`, isTemporaryStatus(status)), answered }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof OutgoingError) return failed(error.message, TEMPORARY.includes(error.reason))
    if (error instanceof SecretRefused) return failed(error.message)
    if (error instanceof UnreadableSecret && error.isDamaged) {
      return failed('The stored headers are damaged and cannot be read; set them again.')
    }
    throw error
  } finally {
    await guarded.close()
  }
}

const failed = (error: string, isTemporary = false) => ({ outcome: 'failed' as const, error, isTemporary })

/** Whether a request may be sent again that may have arrived. */
const mayBeSentAgain = ({ method }: HttpRequestInput, { attempts, schedule }: BegunExecution): boolean =>
  IDEMPOTENT.includes(method) || attempts <= ((schedule.retryPolicy as RetryPolicy | null)?.max_attempts ?? 1)

function headersOf({ body }: HttpRequestInput, values: Record<string, string>, executionId: string): Headers {
  const headers = new Headers({ 'user-agent': 'agent-session-service (schedule)' })
  if (body !== undefined) headers.set('content-type', typeof body === 'string' ? 'text/plain' : 'application/json')
  for (const [name, value] of Object.entries(values)) headers.set(name, value)
  headers.set('idempotency-key', executionId)
  return headers
}

const bodyOf = ({ body }: HttpRequestInput): string | undefined =>
  body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
