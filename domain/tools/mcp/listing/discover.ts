import type { Discovered, McpEndpoint } from '../protocol/client.ts'
import { McpFailure } from '../protocol/client.ts'
import { connect } from '../protocol/connection.ts'
import { type Exchange, exchanges } from '../protocol/exchange.ts'
import { describeFailure, LimitError } from '../protocol/failure.ts'
import { MAX_LIST_BYTES, type McpTimes } from '../protocol/limits.ts'
import { readTools } from './read-tools.ts'

export type Discovering = { fetch: typeof fetch; times: McpTimes }

/** Reads the tools of a server on a separate connection. See `McpClient.discover`. */
export async function discover(
  { fetch, times }: Discovering,
  endpoint: McpEndpoint,
  signal: AbortSignal,
): Promise<Discovered> {
  const ended = new AbortController()
  const late = setTimeout(() => ended.abort(tooLate(times)), times.discover)
  const exchange: Exchange = { signal: AbortSignal.any([signal, ended.signal]), count: countUpTo(MAX_LIST_BYTES) }
  try {
    return await exchanges.run(exchange, async () => {
      const unknown = { ...endpoint, protocol: undefined }
      const connection = await connect({ endpoint: unknown, fetch, times, signal: exchange.signal })
      try {
        return await readTools(connection, exchange.signal, times)
      } finally {
        // Not awaited: the end of a session takes time.
        exchanges.run(undefined, () => connection.close()).catch(() => {})
      }
    })
  } catch (error) {
    signal.throwIfAborted()
    const cause = ended.signal.aborted ? ended.signal.reason : error
    throw new McpFailure(describeFailure(endpoint, cause, exchange))
  } finally {
    clearTimeout(late)
    ended.abort()
  }
}

const tooLate = ({ discover }: McpTimes) => new LimitError(`did not list its tools within ${discover / 1000} s.`)

function countUpTo(maxBytes: number): (bytes: number) => void {
  let left = maxBytes
  return (bytes) => {
    left -= bytes
    if (left < 0) throw new LimitError(`listed its tools in more than ${maxBytes / 1024 / 1024} MiB.`)
  }
}
