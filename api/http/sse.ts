import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { Logger } from 'pino'
import { DisconnectReason } from '../../contract/errors.ts'
import type { EventLine } from '../../domain/events/read/read.ts'
import { type Credential, heldKey } from '../../domain/identity/auth/caller.ts'
import { DomainError } from '../../domain/kit/errors.ts'
import { warnRarely } from '../../lib/warn-rarely.ts'
import { checkedEvents } from './answer-checks.ts'
import { endWithin, writeInPieces } from './back-pressure.ts'
import { createStreamPlaces } from './sse-limits.ts'

/**
 * Settings of streams. Clients are asked to reconnect after `cycleMs` (stream of a session or an organization) or
 * `monitoringCycleMs`. The stream of a turn lasts until the turn ends.
 */
export type SseOptions = {
  cycleMs: number
  monitoringCycleMs: number
  heartbeatMs: number
  maxStreamsPerOrganization: number
  /** Interval between checks for revoked credentials, in ms. Default: 10 s. */
  credentialCheckMs?: number
  /** Maximum number of open streams in the process. Default: 10,000. */
  maxStreams?: number
  /** Time after which a client that takes nothing is disconnected, in ms. Default: 120 s. */
  stalledMs?: number
  /** Time that a client has to take the rest of an ended stream, in ms. Default: 5 s. */
  flushMs?: number
}

/** Returns the heldKey of each credential that is no longer valid. */
type FindEnded = (credentials: Credential[]) => Promise<Set<string>>

export type SseDeps = {
  log: Logger
  findEnded: FindEnded
  /** Returns the owner of an organization. An owner's organizations share the places of streams. */
  ownerOf(organizationId: string): Promise<string>
}

/** Open streams of a process, which are limited and ended together. */
export type SseStreams = {
  /**
   * Begins a stream. Throws before anything is sent: `too_many` at a limit, `invalid` for a connection that cannot
   * carry one, or what `open` throws. The stream then runs by itself until the events end, the client disconnects, or
   * the server ends it. It keeps nothing of the request.
   */
  serve(ctx: Context, request: StreamRequest): Promise<void>
  /**
   * Counts a waiting request as one of the organization's streams; throws `too_many`. `cut` ends its waiting where
   * another owner needs the place. Returns a function that releases it.
   */
  hold(organizationId: string, cut: () => void): Promise<() => void>
  /** Asks every client to reconnect and ends its stream. A stream that is opened later ends at once. */
  close(): Promise<void>
  /** Aborts on `close`, for other code that keeps a client waiting. */
  readonly closing: AbortSignal
  readonly size: number
}

export type StreamRequest = {
  organizationId: string
  /** Credential that the stream does not outlive. */
  credential: Credential | undefined
  kind: 'session' | 'turn' | 'monitoring'
  /** Session of the stream; undefined for a stream of monitoring or of an organization. */
  sessionId: string | undefined
  /** Id after which the events begin. `connected` has it where a stream begins with the present: its client may lose the connection before an event. */
  startId?: string
  /**
   * Headers of a stream in another protocol's form: its frames have data only, and a stream that the server ends breaks
   * off, because there is no event to announce it with. They are read once `open` has resolved.
   */
  foreign?: Record<string, string>
  /** Opens the events. The signal aborts when the stream ends. */
  open: (signal: AbortSignal, onOverflow: () => void) => Promise<AsyncGenerator<SseEvent[], string>>
}

/** Event of the log, or another event of the same form. `line` is its data, in one line. A foreign one has no more. */
export type SseEvent = Partial<Pick<EventLine, 'type'>> & Pick<EventLine, 'line'> & { id?: string }

/** Reason for a client that needs another token before it reconnects. */
const CREDENTIAL_ENDED = 'credential_ended'
const CONNECTED = { type: 'connected', line: '{"status":"connected"}' }
const FLUSH_MS = 5000
const RETRY_MS = 100
/** Number of characters from which joined frames are written. */
const CHUNK_CHARS = 64 * 1024
const CYCLE_JITTER = 0.2
/** Longest delay of a timer. A longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1
/** Longest pause between heartbeats of a foreign stream: its client does not know the interval of this service. */
const FOREIGN_HEARTBEAT_MS = 10_000
const CREDENTIAL_CHECK_MS = 10_000

export function createSseStreams(options: SseOptions, { log, findEnded, ownerOf }: SseDeps): SseStreams {
  const open = new Set<OpenStream>()
  const places = createStreamPlaces(options)
  const closing = new AbortController()

  const hold = async (organizationId: string, cut: () => void) =>
    places.take({ owner: await ownerOf(organizationId), sessionId: undefined, cut })
  const serve = async (ctx: Context, request: StreamRequest) => {
    const { organizationId, sessionId } = request
    const owner = await ownerOf(organizationId)
    const ended = new AbortController()
    // The client comes again, and is refused if it is then still one too many.
    const leave = places.take({ owner, sessionId, cut: () => ended.abort('connection_cycle') })
    if (closing.signal.aborted) ended.abort('shutdown')
    const pace = paceOf(options, request)
    const { credential } = request
    const { res } = ctx
    const begun = begin(ctx, request, ended)
    const release = () => {
      open.delete(entry)
      leave()
    }
    const done = begun
      .then((events) => events && run(res, events, ended, { ...pace, expiresAt: credential?.expiresAt }, log))
      .then(release, release)
    const entry = { credential, end: (reason: string) => ended.abort(reason), done }
    open.add(entry)
    await begun
  }

  const revocation = every(options.credentialCheckMs ?? CREDENTIAL_CHECK_MS, () => endRevoked(open, findEnded, log))

  return {
    serve,
    hold,
    close: async () => {
      revocation.stop()
      closing.abort()
      const streams = [...open]
      for (const { end } of streams) end('shutdown')
      await Promise.allSettled(streams.map(({ done }) => done))
    },
    closing: closing.signal,
    get size() {
      return open.size
    },
  }
}

type OpenStream = { credential: Credential | undefined; end: (reason: string) => void; done: Promise<void> }

/**
 * Ends the streams whose credentials have been revoked; one query covers all streams. While it fails the streams go on,
 * so that a Postgres outage does not disconnect clients.
 */
async function endRevoked(open: Set<OpenStream>, findEnded: FindEnded, log: Logger): Promise<void> {
  const credentials = new Map(
    [...open].flatMap(({ credential }) => (credential ? [[heldKey(credential), credential]] : [])),
  )
  if (credentials.size === 0) return
  try {
    const ended = await findEnded([...credentials.values()])
    for (const { credential, end } of open) if (credential && ended.has(heldKey(credential))) end(CREDENTIAL_ENDED)
  } catch (error) {
    warnRarely(log, { err: error }, 'credentials of streams could not be checked')
  }
}

/** Runs `work` again and again, each time `ms` after the previous run has ended. */
function every(ms: number, work: () => Promise<void>): { stop(): void } {
  let timer: NodeJS.Timeout | undefined
  const wait = () => {
    timer = setTimeout(() => void work().then(() => timer && wait()), ms).unref()
  }
  wait()
  return {
    stop: () => {
      clearTimeout(timer)
      timer = undefined
    },
  }
}

type Pace = Pick<SseOptions, 'heartbeatMs' | 'stalledMs' | 'flushMs'> & {
  isForeign: boolean
  startId: string | undefined
  expiresAt?: Date | undefined
  cycleMs: number
}

function paceOf({ cycleMs, monitoringCycleMs, ...same }: SseOptions, { kind, foreign, startId }: StreamRequest): Pace {
  const jitter = 1 + CYCLE_JITTER * (2 * Math.random() - 1)
  const cyclesMs = { session: cycleMs, monitoring: monitoringCycleMs, turn: Number.POSITIVE_INFINITY }
  const isForeign = foreign !== undefined
  const heartbeatMs = isForeign ? Math.min(same.heartbeatMs, FOREIGN_HEARTBEAT_MS) : same.heartbeatMs
  return { ...same, heartbeatMs, isForeign, startId, cycleMs: cyclesMs[kind] * jitter }
}

type SseEvents = AsyncGenerator<SseEvent[], string>

/** Opens the events and sends the head. Returns undefined for a HEAD request, which needs no more. */
async function begin(ctx: Context, request: StreamRequest, ended: AbortController): Promise<SseEvents | undefined> {
  const { req, res } = ctx
  // The client has disconnected, or pipelined this request behind an answer that may never end.
  if (!res.socket || res.socket.destroyed) throw new DomainError('invalid', 'A stream needs a connection of its own')
  const gone = () => ended.abort('client_gone')
  res.on('close', gone)
  res.on('error', gone)
  // Nothing is written while the client takes nothing, so events collect in the follower's inbox, which is bounded.
  const cutOff = () => {
    if (res.writableNeedDrain) ended.abort('slow_consumer')
  }
  const events = await request.open(ended.signal, cutOff)
  ctx.respond = false
  res.writeHead(200, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-cache, no-transform',
    'X-Accel-Buffering': 'no',
    ...request.foreign,
  })
  if (ctx.method === 'HEAD') {
    endWithin(res, FLUSH_MS)
    return undefined
  }
  // The body is not needed, but left unread it would hide that the client has disconnected.
  req.resume()
  res.socket?.setNoDelay(true)
  return request.foreign === undefined ? checkedEvents(ctx, events) : events
}

async function run(
  res: ServerResponse,
  events: SseEvents,
  ended: AbortController,
  pace: Pace,
  log: Logger,
): Promise<void> {
  const end = endInTime(ended, pace)
  const heartbeat = setInterval(() => {
    // A client that has not taken everything may have half an event.
    if (!res.writableNeedDrain) res.write(': heartbeat\n\n')
  }, pace.heartbeatMs)
  try {
    if (!pace.isForeign) res.write(frame({ ...CONNECTED, ...(pace.startId && { id: pace.startId }) }, RETRY_MS))
    // There is no farewell to a client that has gone, and none after the end of a turn.
    const { data: reason } = DisconnectReason.safeParse(await relay(res, events, ended.signal, pace))
    if (reason !== undefined && pace.isForeign) return void res.destroy()
    if (reason !== undefined) {
      res.write(frame({ type: 'disconnecting', line: JSON.stringify({ reason, retry_ms: RETRY_MS }) }, RETRY_MS))
    }
    endWithin(res, pace.flushMs ?? FLUSH_MS)
  } catch (error) {
    // The client reconnects with its cursor.
    warnRarely(log, { err: error }, 'stream broken off')
    res.destroy()
  } finally {
    clearTimeout(end)
    clearInterval(heartbeat)
    ended.abort('end')
  }
}

/** Ends the stream with its credential or its cycle, whichever is first. */
function endInTime(ended: AbortController, { expiresAt, cycleMs }: Pace): NodeJS.Timeout | undefined {
  const leftMs = (expiresAt?.getTime() ?? Number.POSITIVE_INFINITY) - Date.now()
  const [ms, reason] = leftMs < cycleMs ? [leftMs, CREDENTIAL_ENDED] : [cycleMs, 'connection_cycle']
  return ms <= MAX_TIMER_MS ? setTimeout(() => ended.abort(reason), ms) : undefined
}

/**
 * Reports whether a slow client still gets the rest of an event when its stream ends for this reason. Without the rest
 * it would reconnect for the same large event, and never get past it.
 */
const isPatient = (reason: unknown): boolean => reason === 'connection_cycle'

/** Writes events until they end or the stream is ended. Returns the reason. */
async function relay(res: ServerResponse, events: SseEvents, ended: AbortSignal, { stalledMs }: Pace): Promise<string> {
  let lastAt = performance.now()
  try {
    for (;;) {
      const next = await events.next()
      if (ended.aborted) return String(ended.reason)
      if (next.done) return next.value
      const now = performance.now()
      const retryMs = retryHint(now - lastAt)
      lastAt = now
      for (const chunk of chunks(next.value, retryMs)) {
        const isTaken = await writeInPieces(res, chunk, { stalledMs, signal: ended, isPatient })
        if (ended.aborted) return String(ended.reason)
        if (!isTaken) return 'slow_consumer'
      }
    }
  } finally {
    await events.return('end')
  }
}

/** Returns the delay before a reconnect: 100 ms while events flow, up to 500 ms after a pause. */
const retryHint = (idleMs: number): number => (idleMs < 1000 ? 100 : idleMs < 2000 ? 200 : idleMs < 4000 ? 400 : 500)

function frame({ type, id, line }: SseEvent, retryMs: number): string {
  if (type === undefined) return `data: ${line}\n\n`
  return id === undefined
    ? `event: ${type}\ndata: ${line}\nretry: ${retryMs}\n\n`
    : `event: ${type}\nid: ${id}\ndata: ${line}\nretry: ${retryMs}\n\n`
}

/** Yields the frames of one batch, joined up to a size that a socket takes well. */
function* chunks(events: SseEvent[], retryMs: number): Generator<string> {
  let chunk = ''
  for (const event of events) {
    chunk += frame(event, retryMs)
    if (chunk.length < CHUNK_CHARS) continue
    yield chunk
    chunk = ''
  }
  if (chunk !== '') yield chunk
}
