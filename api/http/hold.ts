import type { Context } from 'koa'
import type { SseStreams } from './sse.ts'

/**
 * Runs work that keeps a client waiting, as one of the organization's streams. The signal aborts after `ms`, when the
 * client disconnects, when another owner needs the place, or when the server closes. Throws `too_many` without a place.
 */
export async function holdFor<T>(
  { ctx, streams, organizationId, ms }: { ctx: Context; streams: SseStreams; organizationId: string; ms: number },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const waiting = waitFor(ctx, ms, streams.closing)
  try {
    const leave = await streams.hold(organizationId, waiting.cut)
    return await work(waiting.signal).finally(leave)
  } finally {
    waiting.end()
  }
}

/** Returns a signal that aborts after `ms`, when the client disconnects, or when the server closes. */
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
