import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { createSqliteRunner } from '../../../../domain/session-data/databases/sqlite-runner/create-sqlite-runner.ts'
import {
  MAX_PAGES,
  PAGE_BYTES,
  type Pages,
  type SqliteRunner,
} from '../../../../domain/session-data/databases/sqlite-runner/sqlite-runner.ts'
import { discover } from '../../../../domain/tools/mcp/listing/discover.ts'
import { McpFailure } from '../../../../domain/tools/mcp/protocol/client.ts'
import { MAX_TOOLS, MAX_TOOLS_BYTES, TIMES } from '../../../../domain/tools/mcp/protocol/limits.ts'
import { createServerFetch } from '../../../../domain/tools/mcp/protocol/server-fetch.ts'
import { endpointOf } from '../../mcp/support.ts'
import { type Parser, refusal } from '../parser.ts'

const never = new AbortController().signal
const TOOL = {
  name: 'echo',
  description: 'Echoes',
  inputSchema: { type: 'object', properties: { a: { type: 'string' } } },
}
const STREAM = /^(?:event|data|id|retry)?:|^\s/

/** Answers as a server does, except that its list of tools is the given bytes. An `id` of 0 in it becomes the request's. */
const serverOf =
  (list: Buffer): typeof fetch =>
  async (_url, init) => {
    if (init?.method !== 'POST') return new Response(null, { status: 405 })
    const { id, method, params } = JSON.parse(String(init.body))
    if (method === 'server/discover') {
      return Response.json({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'Method not found' } })
    }
    if (method === 'initialize') {
      const { protocolVersion } = params
      const result = { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'a', version: '1' } }
      return Response.json({ jsonrpc: '2.0', id, result })
    }
    if (method !== 'tools/list') return new Response(null, { status: 202 })
    const text = list.toString('latin1').replace('"id":0', `"id":${id}`)
    const type = STREAM.test(text) ? 'text/event-stream' : 'application/json'
    return new Response(new Uint8Array(Buffer.from(text, 'latin1')), { headers: { 'content-type': type } })
  }

const answerOf = (tools: unknown[], more = {}) => JSON.stringify({ jsonrpc: '2.0', id: 0, result: { tools, ...more } })

const mcp: Parser = {
  name: 'mcp-list',
  seeds: () =>
    [
      answerOf([TOOL, { ...TOOL, name: 'b', title: 'B', annotations: { readOnlyHint: true } }]),
      `event: message\ndata: ${answerOf([TOOL])}\n\n`,
      `: hello\nid: 1\ndata: ${answerOf([], { ttl: 5 })}\n\n`,
      answerOf([
        { ...TOOL, inputSchema: { type: 'object', properties: { a: { $ref: '#/x' } } } },
        { name: 'no schema' },
      ]),
    ].map((text) => Buffer.from(text)),
  words: [
    '"id":0',
    '"result":',
    '"error":{"code":1,"message":"x"}',
    '"tools":',
    '"nextCursor":"a"',
    '"inputSchema":',
    '{',
    '}',
    '[',
    ']',
    '\\ud800',
    '\n\n',
    'data: ',
    'null',
    '"__proto__":',
  ],
  cost: 10,
  check: async (input) => {
    const times = { ...TIMES, discover: 150, goodbye: 10, reconnect: 1 }
    const connecting = { fetch: createServerFetch(serverOf(input)), times }
    try {
      const { tools, leftOut } = await discover(connecting, endpointOf({ url: 'http://127.0.0.1/mcp' }), never)
      assert(tools.length <= MAX_TOOLS && leftOut.length <= 100)
      assert(JSON.stringify(tools).length <= 2 * MAX_TOOLS_BYTES)
      return 'accepted'
    } catch (error) {
      return refusal(error, McpFailure)
    }
  },
}

let runner: SqliteRunner | undefined

/** Writes a database in pages of the record's size and of another. */
function databaseOf(sql: string, pageBytes: number): Buffer {
  const db = new DatabaseSync(':memory:')
  db.exec(`PRAGMA page_size = ${pageBytes}; ${sql}`)
  const bytes = Buffer.from(db.serialize())
  db.close()
  return bytes
}

const TABLE = "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT UNIQUE); INSERT INTO t VALUES (1, 'x'), (2, 'y')"

const sqlite: Parser = {
  name: 'sqlite-file',
  seeds: () => [
    databaseOf(TABLE, PAGE_BYTES),
    databaseOf(
      `${TABLE}; CREATE VIEW v AS SELECT b FROM t; CREATE TRIGGER r AFTER DELETE ON t BEGIN SELECT 1; END`,
      512,
    ),
  ],
  words: [
    'SQLite format 3\0',
    'CREATE TABLE ',
    'CREATE VIRTUAL TABLE x USING fts5(a)',
    'ATTACH ',
    'load_extension(',
    '\x0d',
    '\x05',
  ],
  cost: 15,
  check: async (input) => {
    runner ??= createSqliteRunner()
    const bytes = ReadableStream.from([input])
    const ran = await runner.load<Pages>(bytes, async (pages) => pages, { owner: 'owner' }, never)
    if (ran.outcome !== 'done') {
      assert.equal(ran.outcome, 'damaged', ran.message)
      assert(ran.message.length < 1000 && ran.message.isWellFormed())
      return 'refused'
    }
    const { pageCount, bytes: stored } = ran.result
    assert(pageCount <= MAX_PAGES && stored.length === pageCount * PAGE_BYTES)
    return 'accepted'
  },
  close: async () => {
    const running = runner
    runner = undefined
    await running?.close()
  },
}

export const SERVERS: Parser[] = [mcp, sqlite]
