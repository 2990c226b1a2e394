import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { call, createScriptedSession, createSession, type Json, textMessage, waitUntilIdle } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
let folder: string
let session: string
beforeAll(async () => {
  api = await newOrganization()
  folder = mkdtempSync(join(tmpdir(), 'database-files-'))
})
beforeEach(async () => {
  session = await createSession(api)
})
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
/** Makes a SQLite file, and returns its bytes. Without defensive mode SQL can write any schema. */
function sqliteFile(sql: string): Buffer {
  const path = join(folder, `${++files}.db`)
  const db = new DatabaseSync(path, { defensive: false })
  db.exec(sql)
  db.close()
  return readFileSync(path)
}
/** Opens the bytes of a SQLite file with SQLite itself. */
function opened(bytes: Uint8Array): DatabaseSync {
  const path = join(folder, `${++files}.db`)
  writeFileSync(path, bytes)
  return new DatabaseSync(path)
}

const at = (rest = '') => `/v1/sessions/${session}/databases${rest}`
async function send(method: string, path: string, body?: Buffer, headers: Record<string, string> = {}) {
  const sent = { method, headers: { ...api.headers, ...headers }, ...(body && { body: new Uint8Array(body) }) }
  const answer = await fetch(api.url + at(path), sent)
  return { status: answer.status, headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) }
}
async function put(name: string, file: Buffer) {
  const { status, bytes } = await send('PUT', `/${name}/file`, file, { 'Content-Type': 'application/vnd.sqlite3' })
  return { status, body: JSON.parse(`${bytes}`) }
}
const query = (name: string, sql: string) => call(api, 'POST', at(`/${name}/query`), { sql })
const rowsOf = async (name: string, sql: string) => (await query(name, sql)).body.rows

const MANY = `CREATE TABLE t (a INTEGER PRIMARY KEY, b); WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
  INSERT INTO t SELECT i, printf('%.*c', 900, 'x') FROM n LIMIT 5000;`

describe('the file of a database', () => {
  it('comes in, is queried, and goes out again', async () => {
    const made = await put('shop', sqliteFile(MANY))
    expect(made).toMatchObject({ status: 201, body: { name: 'shop' } })
    expect(await rowsOf('shop', 'SELECT count(*), max(length(b)) FROM t')).toEqual([[5000, 900]])
    const { status, headers, bytes } = await send('GET', '/shop/file')
    expect([status, headers.get('content-type'), bytes.length]).toEqual([
      ...[200, 'application/octet-stream', made.body.size_bytes],
    ])
    expect(headers.get('content-disposition')).toBe('attachment; filename="shop.sqlite"')
    expect(opened(bytes).prepare('SELECT count(*) AS n FROM t').get()).toEqual({ n: 5000 })
    // Journal mode "delete", which every reader has.
    expect([...bytes.subarray(18, 20)]).toEqual([1, 1])
    const etag = headers.get('etag') ?? ''
    const part = await send('GET', '/shop/file', undefined, { Range: 'bytes=1500000-3000001', 'If-Range': etag })
    expect([part.status, part.bytes.equals(bytes.subarray(1_500_000, 3_000_002))]).toEqual([206, true])
    expect((await send('GET', '/shop/file', undefined, { 'If-None-Match': etag })).status).toBe(304)
  })

  it('replaces a database, also by a smaller one, and its schema with it', async () => {
    await put('shop', sqliteFile(MANY))
    expect(await rowsOf('shop', 'SELECT count(*) FROM t')).toEqual([[5000]])
    const { headers } = await send('HEAD', '/shop/file')
    expect(await put('shop', sqliteFile('CREATE TABLE u (c); INSERT INTO u VALUES (7)'))).toMatchObject({
      ...{ status: 200, body: { name: 'shop', page_count: 2 } },
    })
    expect(await rowsOf('shop', 'SELECT c FROM u')).toEqual([[7]])
    expect((await query('shop', 'SELECT * FROM t')).status).toBe(422)
    const range = { Range: 'bytes=0-9', 'If-Range': headers.get('etag') ?? '' }
    expect((await send('GET', '/shop/file', undefined, range)).status).toBe(200)
  })

  it('goes round for an empty database', async () => {
    await call(api, 'POST', at(), { name: 'empty' })
    const { status, bytes } = await send('GET', '/empty/file')
    expect([status, bytes.length]).toEqual([200, 0])
    expect(await put('other', bytes)).toMatchObject({ status: 201, body: { name: 'other' } })
    expect((await call(api, 'GET', at('/other/schema'))).body).toEqual({ database: 'other', tables: [] })
  })

  it.each([
    ['pages of another size', 'PRAGMA page_size = 1024;'],
    ['a vacuum of its own', 'PRAGMA auto_vacuum = FULL;'],
    ['a write-ahead log', 'PRAGMA journal_mode = WAL;'],
    ['UTF-16', "PRAGMA encoding = 'UTF-16';"],
  ])('may have %s, and is changed by the agent', async (_, pragma) => {
    const sql = 'DELETE FROM t WHERE a > 10; INSERT INTO f VALUES (10)'
    const steps = [{ tool_calls: [{ name: 'sql_execute', arguments: { database: 'd', sql } }] }, { text: 'done' }]
    session = await createScriptedSession(api, steps, { capabilities: [{ ref: 'session_sql_database' }] })
    expect((await put('d', sqliteFile(`${pragma} ${MANY} CREATE VIRTUAL TABLE f USING fts5(x);`))).status).toBe(201)
    await call(api, 'POST', `/v1/sessions/${session}/messages`, textMessage('Go'))
    const done = (await waitUntilIdle(api, session)).find(({ type }: Json) => type === 'tool.completed')
    expect(done?.data).toMatchObject({ status: 'success' })
    expect(await rowsOf('d', 'SELECT count(*), (SELECT count(*) FROM f) FROM t')).toEqual([[10, 1]])
  })

  it('runs nothing that SQL may not run here', async () => {
    const trigger = sqliteFile(
      "CREATE TABLE t (a); CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT load_extension('/x'); END",
    )
    const sql = 'INSERT INTO t VALUES (1)'
    const steps = [{ tool_calls: [{ name: 'sql_execute', arguments: { database: 'd', sql } }] }, { text: 'done' }]
    session = await createScriptedSession(api, steps, { capabilities: [{ ref: 'session_sql_database' }] })
    expect((await put('d', trigger)).status).toBe(201)
    await call(api, 'POST', `/v1/sessions/${session}/messages`, textMessage('Go'))
    const done = (await waitUntilIdle(api, session)).find(({ type }: Json) => type === 'tool.completed')
    expect(done?.data).toMatchObject({ status: 'error', error: expect.stringContaining('load_extension') })
    expect(await rowsOf('d', 'SELECT count(*) FROM t')).toEqual([[0]])
  })

  it.each<[string, () => Buffer, number, RegExp]>([
    ['text', () => Buffer.from('a,b\n1,2\n'.repeat(1000)), 422, /not a SQLite database.*file is not a database/],
    ['half of one', () => sqliteFile(MANY).subarray(0, 1_000_000), 422, /not a SQLite database/],
    [
      'a damaged one',
      () => {
        const file = sqliteFile(MANY)
        return file.fill(0xee, 4096 * 300, 4096 * 310)
      },
      ...([422, /not a SQLite database/] as const),
    ],
    [
      'a virtual table of another kind',
      () =>
        sqliteFile(`PRAGMA writable_schema = ON; CREATE TABLE t (a);
        INSERT INTO sqlite_schema VALUES ('table', 'v', 'v', 0, 'CREATE/**/VIRTUAL TABLE v USING dbstat(main)')`),
      ...([422, /Virtual tables that use dbstat are not available/] as const),
    ],
    ['more than 50 MiB', () => Buffer.alloc(50 * 1024 * 1024 + 1), 413, /at most 52428800 bytes/],
  ])('is refused when it is %s, and changes nothing', async (_, file, status, sentence) => {
    await put('shop', sqliteFile('CREATE TABLE u (c); INSERT INTO u VALUES (7)'))
    const refused = await put('shop', file())
    expect([refused.status, refused.body.error]).toEqual([status, expect.stringMatching(sentence)])
    expect((await put('other', file())).status).toBe(status)
    expect((await call(api, 'GET', at())).body.data).toHaveLength(1)
    expect(await rowsOf('shop', 'SELECT c FROM u')).toEqual([[7]])
  })

  it('has up to 50 MiB', async () => {
    const rows =
      'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT zeroblob(1000000) FROM n LIMIT 52'
    const file = sqliteFile(`CREATE TABLE t AS ${rows}`)
    expect(file.length).toBeGreaterThan(51_900_000)
    expect((await put('large', file)).status).toBe(201)
    const { bytes } = await send('GET', '/large/file')
    expect(opened(bytes).prepare('SELECT sum(length("zeroblob(1000000)")) AS n FROM t').get()).toEqual({
      n: 52_000_000,
    })
  })

  it('is refused as an 11th, under a wrong name and in no session', async () => {
    for (let index = 0; index < 10; index++) await call(api, 'POST', at(), { name: `d${index}` })
    const file = sqliteFile('CREATE TABLE u (c)')
    const more = await put('more', file)
    expect([more.status, more.body.error]).toEqual([409, 'A session has at most 10 databases; delete one first'])
    expect((await put('d3', file)).status).toBe(200)
    expect((await put('1d', file)).status).toBe(400)
    expect((await send('GET', '/missing/file')).status).toBe(404)
    session = session.replace(/.{6}$/, '000000')
    expect(await put('d', file)).toMatchObject({ status: 404, body: { error: 'Session not found' } })
  })
})
