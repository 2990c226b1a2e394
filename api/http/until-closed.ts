import type { Context } from 'koa'
import { RequestError } from './errors.ts'

/**
 * Returns a signal that aborts when the connection closes, so that nothing more is done for a client that has gone. Its
 * reason is an answer that nobody gets, and that is not logged as a failure.
 */
export function untilClosed({ res }: Context): AbortSignal {
  const closed = new AbortController()
  const abort = () => closed.abort(new RequestError(408, 'The client has closed the connection'))
  res.once('close', abort)
  if (res.closed) abort()
  return closed.signal
}
