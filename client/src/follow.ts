import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { ApiError, readApiError } from './errors.ts'
import { delayAfter, ENDLESS_PATIENCE, isTemporary, MAX_ASKED_MS, type Patience, sleep } from './retry.ts'

/** Fields of an event that following needs. Snapshots of health have none of them. */
export type AnyEvent = { id: string; type: string; sequence?: number | null }

export type FollowOptions = {
  /** Requests the stream after the event with this id, or from its beginning. */
  open(after: string | undefined, signal: AbortSignal): Promise<Response>
  after?: string | undefined
  signal?: AbortSignal | undefined
  /** Limits on getting the first event, after which the last error is thrown. Default: none. */
  patience?: Patience
  /** Silence after which a connection counts as dead, in ms. Default: 45 s, for a service with a heartbeat every 30 s. */
  silenceMs?: number | undefined
  /** Called with false when a failure interrupts the events, and with true when they resume. */
  onConnected?: ((isConnected: boolean) => void) | undefined
  /** Called when a stream begins: events that happen from then on will come. */
  onBegin?: (() => void) | undefined
}

const SILENCE_MS = 45_000
/** Delay before a reconnect, unless the service sets another. */
const RETRY_MS = 100
/** Age at which a connection counts as good, even without an event. */
const GOOD_AFTER_MS = 10_000

/**
 * Yields the events of a stream in order, each once, over any number of connections. Ends when the signal aborts, the
 * session is deleted or the stream is over (204). Throws ApiError for an error that retrying cannot fix.
 */
export async function* follow<E extends Partial<AnyEvent> = AnyEvent>(
  options: FollowOptions,
): AsyncGenerator<E, void, undefined> {
  const { open, signal, patience = ENDLESS_PATIENCE, silenceMs = SILENCE_MS, onConnected, onBegin } = options
  let { after } = options
  let sequence = Number.NEGATIVE_INFINITY
  let failures = 0
  let isReceiving = false
  let isConnected = true
  const setConnected = (isNow: boolean) => {
    if (isNow !== isConnected) onConnected?.(isNow)
    isConnected = isNow
  }
  const startedAt = Date.now()
  while (!signal?.aborted) {
    const connection = createConnection(signal, silenceMs)
    let failure: unknown
    failures++
    try {
      for await (const frame of framesOf(
        connection,
        () => open(after, connection.signal),
        () => setConnected(true),
      )) {
        if (frame.event === 'disconnecting') {
          if (readFarewell(frame, connection) === 'session_deleted') return
          if (isReceiving) failures = 0
          break
        }
        if (frame.event === 'connected') {
          // A stream that begins with the present says where that is.
          after = frame.id ?? after
          onBegin?.()
          continue
        }
        const event: E = JSON.parse(frame.data)
        if (typeof event.sequence === 'number') {
          if (event.sequence <= sequence) continue
          sequence = event.sequence
        }
        failures = 0
        isReceiving = true
        after = frame.id ?? after
        yield event
        if (signal?.aborted) return
      }
    } catch (error) {
      if (signal?.aborted) return
      if (isReceiving && isSessionGone(error)) return
      if (!isTemporary(error)) throw error
      failure = error
      setConnected(false)
    } finally {
      connection.close()
    }
    if (connection.isOver) return
    failure ??= new Error('The service sent no event')
    if (after === undefined && failures >= patience.attempts) throw failure
    if (connection.isGood()) failures = 0
    const delayMs = failures === 0 ? 0 : delayAfter(failures, failure)
    await sleep(Math.max(delayMs, Math.min(connection.retryMs, MAX_ASKED_MS)), signal)
    if (after === undefined && Date.now() - startedAt >= patience.ms) throw failure
  }
}

/** Checks the field, because other things may be missing, such as the organization that a user has left. */
const isSessionGone = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 'not_found' && error.field === 'session_id'

type Connection = ReturnType<typeof createConnection>

function createConnection(outer: AbortSignal | undefined, silenceMs: number) {
  const controller = new AbortController()
  const close = () => {
    outer?.removeEventListener('abort', close)
    controller.abort()
  }
  outer?.addEventListener('abort', close)
  let openedAt: number | undefined
  return {
    signal: controller.signal,
    retryMs: RETRY_MS,
    /** True when the stream is over. */
    isOver: false,
    close,
    opened: () => {
      openedAt = Date.now()
    },
    isGood: () => openedAt !== undefined && Date.now() - openedAt >= GOOD_AFTER_MS,
    /** Waits for bytes, and closes the connection if none arrive. Rejects at once when it is closed. */
    bytes: <T>(work: Promise<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          reject(new Error(`Nothing came for ${silenceMs} ms`))
          close()
        }, silenceMs)
        const stop = () => reject(controller.signal.reason)
        controller.signal.addEventListener('abort', stop)
        work.then(resolve, reject).finally(() => {
          clearTimeout(timer)
          controller.signal.removeEventListener('abort', stop)
        })
      }),
  }
}

/** Requests a stream and yields its frames, until the service or the network ends it. */
async function* framesOf(
  connection: Connection,
  open: () => Promise<Response>,
  onOpen: () => void,
): AsyncGenerator<EventSourceMessage, void, undefined> {
  const response = await connection.bytes(open())
  if (!response.ok) throw await connection.bytes(readApiError(response))
  connection.isOver = response.status === 204
  if (connection.isOver || !response.body) return
  if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) {
    throw new ApiError(
      'The answer is not an event stream: a proxy may have replaced the answer of the service',
      response,
    )
  }
  connection.opened()
  onOpen()
  const frames: EventSourceMessage[] = []
  const parser = createParser({
    onEvent: (frame) => frames.push(frame),
    onRetry: (ms) => {
      connection.retryMs = ms
    },
  })
  const decoder = new TextDecoder()
  const reader = response.body.getReader()
  for (;;) {
    const { done, value } = await connection.bytes(reader.read())
    if (done) return
    parser.feed(decoder.decode(value, { stream: true }))
    yield* frames.splice(0)
  }
}

/** Reads why the service closes a connection, and after which delay to reconnect. */
function readFarewell(frame: EventSourceMessage, connection: Connection): unknown {
  const { reason, retry_ms } = JSON.parse(frame.data)
  if (typeof retry_ms === 'number') connection.retryMs = retry_ms
  return reason
}
