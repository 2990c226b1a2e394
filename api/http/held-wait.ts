import type { Context } from 'koa'
import type { SseStreams } from './sse.ts'

/** A request that waits counts as a stream of this organization, and does so for at most `ms`. */
export type Held = { organizationId: string; ms: number }

/**
 * Runs `work` as one of the organization's streams. Its signal aborts when the time is over, when the client
 * disconnects, when the server closes, or where another owner needs the place. Throws `too_many` without a place,
 * before `work` has begun.
 */
export async function whileHeld<T>(
  ctx: Context,
  streams: SseStreams,
  { organizationId, ms }: Held,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const waiting = waitFor(ctx, ms, streams.closing)
  const leave = await streams.hold(organizationId, waiting.cut).catch((error) => {
    waiting.end()
    throw error
  })
  try {
    return await work(waiting.signal)
  } finally {
    waiting.end()
    leave()
  }
}

function waitFor(ctx: Context, ms: number, closing: AbortSignal) {
  const over = new AbortController()
  const abort = () => over.abort()
  const timer = setTimeout(abort, ms)
  ctx.res.once('close', abort)
  closing.addEventListener('abort', abort)
  if (ctx.res.closed || closing.aborted) abort()
  const end = () => {
    clearTimeout(timer)
    ctx.res.off('close', abort)
    closing.removeEventListener('abort', abort)
  }
  return { signal: over.signal, cut: abort, end }
}
