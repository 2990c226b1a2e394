import { isRecord } from '../../../../lib/is-record.ts'
import type { Discovered } from '../protocol/client.ts'
import { type Connection, protocolOf } from '../protocol/connection.ts'
import { LimitError } from '../protocol/failure.ts'
import { MAX_INSTRUCTIONS_BYTES, MAX_PAGES, type McpTimes } from '../protocol/limits.ts'
import { cutToBytes } from '../protocol/text.ts'
import { ANY_RESULT } from './any-result.ts'
import { createToolList } from './listed-tool.ts'

/** Reads all pages of a server's tools. Throws the library's errors, or `LimitError`. */
export async function readTools(
  connection: Connection,
  signal: AbortSignal | undefined,
  times: McpTimes,
): Promise<Discovered> {
  const { client, redact } = connection
  const list = createToolList(redact)
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
  return {
    tools: list.tools(),
    leftOut: list.leftOut,
    instructions: instructionsOf(connection),
    ttlMs,
    protocol: protocolOf(connection),
  }
}

/** Redacts before cutting, because a part of a secret would not be found. */
function instructionsOf({ client, redact }: Connection): string | undefined {
  const instructions: unknown = client.getInstructions()
  return typeof instructions === 'string' ? cutToBytes(redact(instructions), MAX_INSTRUCTIONS_BYTES) : undefined
}

type Page = { tools: unknown[]; nextCursor: string | undefined; ttlMs: number | undefined }

async function readPage(
  { client }: Connection,
  cursor: string | undefined,
  signal: AbortSignal | undefined,
  times: McpTimes,
): Promise<Page> {
  const params = cursor === undefined ? {} : { cursor }
  const options = { signal, timeout: times.discover }
  const page: unknown = await client.request({ method: 'tools/list', params }, ANY_RESULT, options)
  if (!isRecord(page) || !Array.isArray(page.tools)) throw new LimitError('answered without a list of tools.')
  const { tools, nextCursor, ttlMs } = page
  return {
    tools,
    nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined,
    ttlMs: typeof ttlMs === 'number' && Number.isSafeInteger(ttlMs) && ttlMs >= 0 ? ttlMs : undefined,
  }
}

const shorter = (one: number | undefined, other: number | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)
