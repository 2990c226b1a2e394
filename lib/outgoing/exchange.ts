import { type Agent, type Dispatcher, errors } from 'undici'
import { type AnswerBody, type BodyOptions, createAnswerBody, type Flow } from './answer-body.ts'
import { connectionError } from './connection-error.ts'
import { createDecodedBody, decodersOf } from './decoded-body.ts'
import { OutgoingError } from './outgoing-error.ts'

export type ExchangeOptions = BodyOptions & { headersTimeoutMs: number; idleTimeoutMs: number }

export type Sent = {
  url: URL
  method: string
  headers: Headers
  body: string | Uint8Array | undefined
  signal: AbortSignal | null | undefined
}

export type Head = { status: number; statusText: string; headers: Headers }
type RawHead = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

/**
 * Sends a request and receives its answer, without following redirects. Throws `OutgoingError`, or the signal's reason.
 * `check` may refuse an answer by its head. undici's own `fetch` would double the cost of a short exchange.
 */
export function exchange(
  agent: Agent,
  sent: Sent,
  options: ExchangeOptions,
  check: (head: Head) => OutgoingError | undefined,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const { url, method, headers, body = null } = sent
    const { origin, pathname, search } = url
    const receiver = createReceiver(sent, options, check, { resolve, reject })
    agent.dispatch({ origin, path: pathname + search, method, headers: [...headers].flat(), body }, receiver)
  })
}

type Settle = { resolve(answer: Response): void; reject(reason: unknown): void }

/** Receives the answer of one request. Ends it when the signal aborts, or when its head is late. */
function createReceiver(
  { url, method, signal }: Sent,
  options: ExchangeOptions,
  check: (head: Head) => OutgoingError | undefined,
  { resolve, reject }: Settle,
): Dispatcher.DispatchHandler {
  let controller: Dispatcher.DispatchController | undefined
  let body: AnswerBody | undefined
  let isOver = false

  const finish = () => {
    isOver = true
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
  /** Ends the exchange and its connection for a reason of our own. */
  const giveUp = (reason: unknown) => {
    if (isOver) return
    finish()
    if (body === undefined) reject(reason)
    else body.fail(reason, 'at_once')
    controller?.abort(asError(reason))
  }
  const abort = () => giveUp(signal?.reason)
  const timer = setTimeout(() => giveUp(headersTimeout(options.headersTimeoutMs)), options.headersTimeoutMs)
  signal?.addEventListener('abort', abort)

  const flow: Flow = {
    pause: () => controller?.pause(),
    resume: () => controller?.resume(),
    abort: (reason) => {
      if (isOver) return
      finish()
      controller?.abort(asError(reason))
    },
  }
  const toError = (error: unknown) => bodyError(error, options.idleTimeoutMs)
  const createBody = (headers: Headers) => {
    const decoders = decodersOf(headers)
    return decoders.length === 0 ? createAnswerBody(options, flow) : createDecodedBody(decoders, options, flow, toError)
  }
  return {
    onRequestStart: (given) => {
      controller = given
      if (isOver) given.abort(new errors.RequestAbortedError())
    },
    onResponseStart: (_, status, rawHead, statusText = '') => {
      if (isOver || status < 200) return
      clearTimeout(timer)
      const head = { status, statusText: statusText.replaceAll(/[^ -~]/g, ''), headers: readHead(rawHead) }
      const problem = check(head)
      if (problem !== undefined) return giveUp(problem)
      if (method !== 'HEAD' && !WITHOUT_BODY.includes(status)) body = createBody(head.headers)
      resolve(new Response(body?.stream ?? null, head))
    },
    onResponseData: (_, piece) => {
      if (body === undefined) giveUp(new OutgoingError('unreadable', 'The answer has a body and must not.'))
      // undici's bytes are never shared memory.
      else body.add(piece as Uint8Array<ArrayBuffer>)
    },
    onResponseEnd: () => {
      if (isOver) return
      finish()
      body?.end()
    },
    onResponseError: (_, error) => {
      if (isOver) return
      finish()
      if (body === undefined) reject(sendingError(url, error))
      else body.fail(toError(error), 'after_received')
    },
  }
}

const WITHOUT_BODY = [204, 205, 304]

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new errors.RequestAbortedError('The request was given up.')

const headersTimeout = (headersTimeoutMs: number) =>
  new OutgoingError('timeout', `There was no answer within ${headersTimeoutMs / 1000} s.`, {
    cause: new errors.HeadersTimeoutError(),
  })

function readHead(raw: RawHead): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(raw)) {
    for (const one of [value].flat()) if (one !== undefined) headers.append(name, one)
  }
  return headers
}

/** Converts an error of a request. The error of a malformed header may quote the header, so it is dropped. */
function sendingError(url: URL, error: unknown): OutgoingError {
  const isMalformed = error instanceof errors.InvalidArgumentError
  const known = isMalformed ? undefined : connectionError(url.hostname, new TypeError('', { cause: error }))
  if (known instanceof OutgoingError) return known
  return new OutgoingError('invalid_request', 'The request has a method or a header that cannot be sent.')
}

function bodyError(cause: unknown, idleTimeoutMs: number): OutgoingError {
  if (cause instanceof errors.BodyTimeoutError) {
    return new OutgoingError('timeout', `The answer paused for more than ${idleTimeoutMs / 1000} s.`, { cause })
  }
  return new OutgoingError('unreadable', 'The answer broke off or could not be unpacked.', { cause })
}
