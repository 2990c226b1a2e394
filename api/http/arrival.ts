import type { IncomingMessage } from 'node:http'
import type { Context, Middleware } from 'koa'
import { RequestError } from './errors.ts'

export type ArrivalLimits = {
  /** Time that a request's body has to arrive, in ms. */
  requestMs: number
  /** The same for an upload. */
  uploadMs: number
  /** In each `windowMs` of an upload as many bytes have to come. */
  windowMs: number
  windowBytes: number
  /** A client that has its answer may send for so long before its connection is closed, in ms. */
  lingerMs: number
}

export const ARRIVAL_LIMITS: ArrivalLimits = {
  requestMs: 60_000,
  uploadMs: 600_000,
  windowMs: 30_000,
  windowBytes: 512 * 1024,
  lingerMs: 2000,
}

/** The time limit of one request's body. */
export type Arrival = {
  /** Aborts with RequestError: 408 when the body has not arrived in time, 400 when its client went away before. */
  signal: AbortSignal
  /** Gives the body the time of an upload. */
  allowUpload(): void
  /** Takes and drops what still comes of a body that nobody wants any more, and closes the connection soon after the answer. */
  dropRest(): void
}

export const arrivalOf = (ctx: Context): Arrival => ctx.state.arrival

/**
 * Bounds the time in which a request arrives; Node has one bound for all. Where nobody waits for the body any more, the
 * connection is closed.
 */
export const limitArrival =
  (limits: ArrivalLimits = ARRIVAL_LIMITS): Middleware =>
  (ctx, next) => {
    ctx.state.arrival = hasBody(ctx.req) ? watch(ctx.req, limits) : ARRIVED
    return next()
  }

/** Of a request without a body nothing is waited for. */
const ARRIVED: Arrival = { signal: new AbortController().signal, allowUpload() {}, dropRest() {} }

function watch(req: IncomingMessage, limits: ArrivalLimits): Arrival {
  const late = new AbortController()
  const close = () => {
    if (!req.complete) req.destroy()
  }
  const closeSoon = () => setTimeout(close, limits.lingerMs).unref()
  const expire = () => {
    clearInterval(timer)
    if (req.complete) return
    late.abort(new RequestError(408, 'The request did not arrive in time'))
    closeSoon()
  }
  let timer = setTimeout(expire, limits.requestMs).unref()
  req.once('close', () => {
    clearInterval(timer)
    // A parser of compressed bodies would wait for ever.
    if (!req.complete) late.abort(new RequestError(400, 'The request broke off'))
  })
  return {
    signal: late.signal,
    allowUpload() {
      if (late.signal.aborted) return
      clearTimeout(timer)
      timer = expireWhenSlow(req, limits, expire)
    },
    dropRest() {
      if (req.complete) return
      req.resume()
      closeSoon()
    },
  }
}

function expireWhenSlow(req: IncomingMessage, limits: ArrivalLimits, expire: () => void): NodeJS.Timeout {
  const until = Date.now() + limits.uploadMs
  let seen = req.socket.bytesRead
  const look = () => {
    const { bytesRead } = req.socket
    // With bytes that nobody has read yet it is the service that is slow.
    const isSlow = bytesRead - seen < limits.windowBytes && req.readableLength === 0
    seen = bytesRead
    if (isSlow || Date.now() >= until) expire()
  }
  return setInterval(look, limits.windowMs).unref()
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > 0

/** Settles as `work` does, or rejects with the signal's reason when it aborts before. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
