import { type Exchange, exchanges } from './exchange.ts'
import { StatusError } from './status-error.ts'

/**
 * Creates the `fetch` of a server's transport. It throws `StatusError` for statuses that the library would interpret as
 * something of the protocol, and notes in the exchange why a body has broken off.
 */
export const createServerFetch =
  (guarded: typeof fetch): typeof fetch =>
  async (url, init) => {
    const exchange = exchanges.getStore()
    try {
      const answer = await guarded(url, init)
      if (hasEnded(answer.status)) {
        await answer.body?.cancel()
        throw new StatusError(answer)
      }
      if (exchange === undefined) return answer
      if (init?.method === 'POST') exchange.isStream = isStream(answer)
      return watch(answer, exchange)
    } catch (error) {
      note(exchange, error)
      throw error
    }
  }

/** Statuses after which no other form of the protocol need be tried. */
const hasEnded = (status: number) => status === 401 || status === 403 || status === 429 || status >= 500

const isStream = ({ headers }: Response) => /^text\/event-stream\b/i.test(headers.get('content-type') ?? '')

function watch(answer: Response, exchange: Exchange): Response {
  const { status, statusText, headers, body } = answer
  if (body === null) return answer
  const reader = body.getReader()
  const watched = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) return controller.close()
          exchange.count?.(value.length)
          controller.enqueue(value)
        } catch (error) {
          note(exchange, error)
          await reader.cancel(error).catch(() => {})
          throw error
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // Nothing is read ahead.
    { highWaterMark: 0 },
  )
  return new Response(watched, { status, statusText, headers })
}

/** Keeps the first failure: later ones follow from it. */
function note(exchange: Exchange | undefined, error: unknown): void {
  if (exchange !== undefined && error instanceof Error && !exchange.signal.aborted) exchange.failure ??= error
}
