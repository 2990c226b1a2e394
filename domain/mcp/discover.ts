import { isRecord } from '../../lib/is-record.ts'
import { ANY_RESULT } from './any-result.ts'
import type { Discovered, McpEndpoint } from './client.ts'
import { McpFailure } from './client.ts'
import { type Connection, connect, protocolOf } from './connection.ts'
import { type Exchange, exchanges } from './exchange.ts'
import { describeFailure, LimitError } from './failure.ts'
import { MAX_LIST_BYTES, MAX_PAGES, type McpTimes } from './limits.ts'
import { createToolList } from './listed-tool.ts'

export type Discovering = { fetch: typeof fetch; times: McpTimes }

/** Reads the tools of a server on a connection of its own. See `McpClient.discover`. */
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
        // Nobody waits for the end of a session.
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

async function readTools(connection: Connection, signal: AbortSignal, times: McpTimes): Promise<Discovered> {
  const { client } = connection
  const list = createToolList()
  let ttlMs: number | undefined
  if (client.getServerCapabilities()?.tools !== undefined) {
    let cursor: string | undefined
    let pages = 0
    do {
      if (pages++ === MAX_PAGES) {
        list.leave('', `a list is read up to page ${MAX_PAGES}`)
        break
      }
      const page = await readPage(connection, cursor, signal, times)
      for (const tool of page.tools) list.add(tool)
      ttlMs = shorter(ttlMs, page.ttlMs)
      cursor = page.nextCursor
    } while (cursor !== undefined)
  }
  return { tools: list.tools(), leftOut: list.leftOut, ttlMs, protocol: protocolOf(connection) }
}

type Page = { tools: unknown[]; nextCursor: string | undefined; ttlMs: number | undefined }

async function readPage(
  { client }: Connection,
  cursor: string | undefined,
  signal: AbortSignal,
  times: McpTimes,
): Promise<Page> {
  const params = cursor === undefined ? {} : { cursor }
  const options = { signal, timeout: times.discover }
  const page: unknown = await client.request({ method: 'tools/list', params }, ANY_RESULT, options)
  if (!isRecord(page) || !Array.isArray(page.tools)) throw new LimitError('sent a list of tools that is no list.')
  const { tools, nextCursor, ttlMs } = page
  return {
    tools,
    nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined,
    ttlMs: typeof ttlMs === 'number' && Number.isSafeInteger(ttlMs) && ttlMs >= 0 ? ttlMs : undefined,
  }
}

const shorter = (one: number | undefined, other: number | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)
