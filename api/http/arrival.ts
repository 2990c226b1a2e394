import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Context, Middleware } from 'koa'
import { RequestError } from './errors.ts'

export type ArrivalLimits = {
  /** Time limit for a request's body to arrive, in ms. */
  requestMs: number
  /** Time limit for an upload to arrive, in ms. */
  uploadMs: number
  /** Length of a window, in ms. At least `windowBytes` of an upload must arrive in each. */
  windowMs: number
  windowBytes: number
  /** Time for which an answered client may go on sending before its connection is closed, in ms. */
  lingerMs: number
}

export const ARRIVAL_LIMITS: ArrivalLimits = {
  requestMs: 60_000,
  uploadMs: 600_000,
  windowMs: 30_000,
  windowBytes: 512 * 1024,
  lingerMs: 2000,
}

/** Time limit of one request's body. */
export type Arrival = {
  /** Aborts with RequestError: 408 when the body has not arrived in time, 400 when the client disconnected before. */
  signal: AbortSignal
  /** Extends the limit to an upload's. */
  allowUpload(): void
  /** Discards the rest of a body that is no longer needed, and closes the connection soon afterwards. */
  dropRest(): void
}

export const arrivalOf = (ctx: Context): Arrival => ctx.state.arrival

/**
 * Bounds the time in which a request's body arrives; Node has only one limit for all requests. The connection is closed
 * when the body is given up.
 */
export const limitArrival =
  (limits: ArrivalLimits = ARRIVAL_LIMITS): Middleware =>
  (ctx, next) => {
    const arrival = hasBody(ctx.req) ? watch(ctx.req, limits) : ARRIVED
    ctx.state.arrival = arrival
    // Node would discard the rest of a body that nobody reads until the request's time is over.
    ctx.res.once('finish', () => arrival.dropRest())
    return next()
  }

/** Arrival of a request without a body, which is complete from the start. */
const ARRIVED: Arrival = { signal: new AbortController().signal, allowUpload() {}, dropRest() {} }

/** The latest request with a body on each connection. */
const latest = new WeakMap<Socket, IncomingMessage>()

/**
 * Lets the sender of a body that is still arriving read its answer. Node would close the connection behind an answer
 * that is its last one; what arrives then resets it, and the sender may lose the answer.
 */
function lingerBeforeClose(req: IncomingMessage): void {
  const { socket } = req
  // Once for each connection, however many requests it brings.
  const isWrapped = latest.has(socket)
  latest.set(socket, req)
  if (isWrapped) return
  const destroySoon = socket.destroySoon.bind(socket)
  socket.destroySoon = () => {
    const last = latest.get(socket)
    latest.delete(socket)
    if (last === undefined || last.complete || last.destroyed) return destroySoon()
    socket.end()
    last.once('end', destroySoon)
  }
}

function watch(req: IncomingMessage, limits: ArrivalLimits): Arrival {
  lingerBeforeClose(req)
  const late = new AbortController()
  const closeSoon = () => closeWhenSilent(req, limits.lingerMs)
  const expire = () => {
    clearInterval(timer)
    if (req.complete) return
    late.abort(new RequestError(408, 'The request did not arrive in time'))
    closeSoon()
  }
  let timer = setTimeout(expire, limits.requestMs).unref()
  req.once('close', () => {
    clearInterval(timer)
    // A parser of a compressed body would otherwise wait forever.
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

/** Number of the periods for which a sender may go on sending. */
const LINGER_PERIODS = 4

/** Closes the connection of a body that is discarded when nothing of it came in a period, or after four of them. */
function closeWhenSilent(req: IncomingMessage, periodMs: number): void {
  let seen = req.socket.bytesRead
  let periods = 0
  const look = () => {
    if (req.complete || req.destroyed) return clearInterval(timer)
    const { bytesRead } = req.socket
    // After a pause of the process, what a sender has sent meanwhile is not read yet.
    if (bytesRead > seen && ++periods < LINGER_PERIODS) seen = bytesRead
    else req.destroy()
  }
  const timer = setInterval(look, periodMs).unref()
}

function expireWhenSlow(req: IncomingMessage, limits: ArrivalLimits, expire: () => void): NodeJS.Timeout {
  const begunAt = performance.now()
  let seen = req.socket.bytesRead
  const look = () => {
    const { bytesRead } = req.socket
    // Unread bytes mean that the service is slow, not the client.
    const isSlow = bytesRead - seen < limits.windowBytes && req.readableLength === 0
    seen = bytesRead
    const ms = performance.now() - begunAt
    // Never earlier than any other request: a small upload may take its time.
    if ((isSlow && ms >= limits.requestMs) || ms >= limits.uploadMs) expire()
  }
  return setInterval(look, limits.windowMs).unref()
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > 0
