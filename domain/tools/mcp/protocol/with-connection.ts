import type { McpEndpoint } from './client.ts'
import { type Connection, connect } from './connection.ts'
import { type Exchange, exchanges } from './exchange.ts'
import { LimitError, toToolError } from './failure.ts'
import { MAX_LIST_BYTES, type McpTimes } from './limits.ts'

/** Words that follow "The MCP server …" when a limit of time or size is exceeded. */
export type LimitWords = { late: string; large: string }

export type ToServers = { fetch: typeof fetch; times: McpTimes }

/**
 * Runs requests on a connection of their own, within 30 s and 4 MiB. Negotiates the protocol anew. Throws `ToolError`,
 * or the signal's reason.
 */
export async function withConnection<T>(
  { fetch, times }: ToServers,
  endpoint: McpEndpoint,
  { late, large }: LimitWords,
  signal: AbortSignal,
  run: (connection: Connection, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ended = new AbortController()
  const tooLate = () => ended.abort(new LimitError(`${late} within ${times.discover / 1000} s.`))
  const timer = setTimeout(tooLate, times.discover)
  const exchange: Exchange = { signal: AbortSignal.any([signal, ended.signal]), count: countOr(large) }
  try {
    return await exchanges.run(exchange, async () => {
      const unknown = { ...endpoint, protocol: undefined }
      const connection = await connect({ endpoint: unknown, fetch, times, signal: exchange.signal })
      try {
        return await run(connection, exchange.signal)
      } finally {
        // Not awaited: the end of a session takes time.
        exchanges.run(undefined, () => connection.close()).catch(() => {})
      }
    })
  } catch (error) {
    signal.throwIfAborted()
    throw toToolError(endpoint, ended.signal.aborted ? ended.signal.reason : error, exchange)
  } finally {
    clearTimeout(timer)
    ended.abort()
  }
}

function countOr(large: string): (bytes: number) => void {
  let left = MAX_LIST_BYTES
  return (bytes) => {
    left -= bytes
    if (left < 0) throw new LimitError(`${large} more than ${MAX_LIST_BYTES / 1024 / 1024} MiB.`)
  }
}
