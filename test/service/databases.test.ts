import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  expectQuota,
  type Json,
  textMessage,
  waitUntilIdle,
} from '../support/http.ts'
import { expectSoundRecord } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const WITH_SQL = { capabilities: [{ ref: 'session_sql_database' }] }
const SAYS_HOW = 'name: must have 1 to 64 letters of A to Z, digits and underscores, and not begin with a digit'

type ScriptedCall = [name: string, args: object]
const step = ([name, args]: ScriptedCall) => ({ tool_calls: [{ name, arguments: args }] })

/** Creates a session whose model makes the calls of each turn, one with each answer, and then answers. */
async function createTurns(...turns: ScriptedCall[][]) {
  const script = turns.flatMap((calls) => [...calls.map(step), { text: 'done' }])
  const id = await createScriptedSession(api, script, WITH_SQL)
  return { id, path: `/v1/sessions/${id}/databases`, run: () => runTurn(id) }
}

/** Runs a turn. Returns the values or errors of its calls. */
async function runTurn(id: string): Promise<Json[]> {
  const { body } = await call(api, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  const events = await waitUntilIdle(api, id)
  expectSoundRecord(events)
  return events
    .filter(({ type, context }) => type === 'tool.completed' && context.turn_id === body.id.replace('message', 'turn'))
    .map(({ data }) => (data.status === 'success' ? JSON.parse(data.result[0].text) : data.error))
}

describe('databases of a session', () => {
  it('are created, listed, described and deleted', async () => {
    const path = `/v1/sessions/${await createSession(api)}/databases`
    expect((await call(api, 'GET', path)).body).toEqual({ data: [] })
    const notes = await call(api, 'POST', path, { name: 'notes' })
    const time = expect.stringMatching(/Z$/)
    const empty = { size_bytes: 0, page_count: 0, created_at: time, updated_at: time }
    expect(notes).toMatchObject({ status: 201, body: { name: 'notes', ...empty } })
    const other = await call(api, 'POST', path, { name: '_Other2' })
    expect((await call(api, 'GET', path)).body).toEqual({ data: [other.body, notes.body] })
    expect((await call(api, 'GET', `${path}/notes`)).body).toEqual(notes.body)
    expect((await call(api, 'GET', `${path}/notes/schema`)).body).toEqual({ database: 'notes', tables: [] })
    expect((await call(api, 'DELETE', `${path}/notes`)).status).toBe(204)
    expect((await call(api, 'GET', path)).body).toEqual({ data: [other.body] })
    // The name is free again.
    expect((await call(api, 'POST', path, { name: 'notes' })).status).toBe(201)
  })

  it.each<[string, string, string, unknown, number, string | RegExp]>([
    ['a digit first', 'POST', '', { name: '1a' }, 400, SAYS_HOW],
    ['a hyphen', 'POST', '', { name: 'a-b' }, 400, SAYS_HOW],
    ['65 characters', 'POST', '', { name: 'a'.repeat(65) }, 400, SAYS_HOW],
    ['an empty name', 'POST', '', { name: '' }, 400, SAYS_HOW],
    ['a line end', 'POST', '', { name: 'a\n' }, 400, SAYS_HOW],
    ['another alphabet', 'POST', '', { name: 'größe' }, 400, SAYS_HOW],
    ['a number', 'POST', '', { name: 1 }, 400, /^name: /],
    ['no name', 'POST', '', {}, 400, /^name: /],
    ['a wrong name in the path', 'GET', '/a-b', undefined, 400, SAYS_HOW],
    ['a wrong name to delete', 'DELETE', '/a.b', undefined, 400, SAYS_HOW],
    ['a path', 'GET', '/..%2Fa/schema', undefined, 400, SAYS_HOW],
    ['a duplicate', 'POST', '', { name: 'taken' }, 409, 'The session has a database taken already'],
    ['a missing one', 'GET', '/missing', undefined, 404, 'Database not found'],
    ['a missing one to delete', 'DELETE', '/missing', undefined, 404, 'Database not found'],
    ['the schema of a missing one', 'GET', '/missing/schema', undefined, 404, 'Database not found'],
    ['another case', 'GET', '/TAKEN', undefined, 404, 'Database not found'],
  ])('refuse %s', async (_, method, rest, body, status, sentence) => {
    const path = `/v1/sessions/${await createSession(api)}/databases`
    await call(api, 'POST', path, { name: 'taken' })
    expectError(await call(api, method, `${path}${rest}`, body), status, sentence)
    expect((await call(api, 'GET', path)).body.data).toHaveLength(1)
  })

  it('are at most 10, however many are created at once', async () => {
    const path = `/v1/sessions/${await createSession(api)}/databases`
    const answers = await Promise.all(
      Array.from({ length: 15 }, (_, index) => call(api, 'POST', path, { name: `d${index}` })),
    )
    const refused = answers.filter(({ status }) => status !== 201)
    for (const one of refused) expectQuota(one, 'A session has at most 10 databases; delete one first')
    expect([refused.length, (await call(api, 'GET', path)).body.data.length]).toEqual([5, 10])
  })
})

describe('a query over HTTP', () => {
  it('reads rows with the limits of an agent, and changes nothing', async () => {
    const script = 'CREATE TABLE notes (id INTEGER PRIMARY KEY, text); INSERT INTO notes (text) VALUES (?)'
    const { path, run } = await createTurns([
      ['sql_execute', { database: 'notes', sql: script.split(';')[0] }],
      ['sql_execute', { database: 'notes', sql: script.split(';')[1], params: ['ü'] }],
    ])
    await run()
    const query = (body: object) => call(api, 'POST', `${path}/notes/query`, body)
    const { status, body } = await query({ sql: 'SELECT * FROM notes WHERE text = ?', params: ['ü'] })
    expect([status, body]).toEqual([200, { columns: ['id', 'text'], rows: [[1, 'ü']], row_count: 1, truncated: false }])
    const endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n'
    expect((await query({ sql: endless })).body).toMatchObject({ row_count: 1000, truncated: true })
    for (const sql of ['DELETE FROM notes', "ATTACH 'x' AS y", 'SELEKT', 'SELECT 1; SELECT 2']) {
      expectError(await query({ sql }), 422, /./)
    }
    for (const wrong of [
      {},
      { sql: ' ' },
      { sql: 1 },
      { sql: 'SELECT ?', params: [[]] },
      { sql: 'SELECT', params: {} },
    ]) {
      expectError(await query(wrong), 400, /^(sql|params)/)
    }
    expect((await query({ sql: 'SELECT count(*) FROM notes' })).body.rows).toEqual([[1]])
    expectError(await call(api, 'POST', `${path}/none/query`, { sql: 'SELECT 1' }), 404, 'Database not found')
  })
})

describe('the tools of session_sql_database', () => {
  it('make a table, fill it, and find it again in another turn', async () => {
    const columns = 'id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL DEFAULT 1.5, photo BLOB'
    const { id, path, run } = await createTurns(
      [
        ['sql_execute', { database: 'shop', sql: `CREATE TABLE products (${columns})` }],
        [
          'sql_execute',
          { database: 'shop', sql: 'INSERT INTO products (name) VALUES (?), (?)', params: ['tea', null] },
        ],
        [
          'sql_execute',
          { database: 'shop', sql: 'INSERT INTO products (name) VALUES (?), (?)', params: ['tea', '🍵'] },
        ],
      ],
      [
        [
          'sql_query',
          { database: 'shop', sql: 'SELECT name, price FROM products WHERE id < ? ORDER BY id', params: [9] },
        ],
        ['sql_schema', { database: 'shop' }],
      ],
    )
    expect((await call(api, 'GET', `/v1/sessions/${id}`)).body.features).toEqual(['sql_database'])
    const [made, refused, filled] = await run()
    expect([made, filled]).toMatchObject([{ rows_affected: 0 }, { rows_affected: 2, last_insert_rowid: 2 }])
    expect(refused).toMatch(/NOT NULL/)
    const table = {
      name: 'products',
      columns: [
        { name: 'id', type: 'INTEGER', notnull: false, pk: true, default_value: null },
        { name: 'name', type: 'TEXT', notnull: true, pk: false, default_value: null },
        { name: 'price', type: 'REAL', notnull: false, pk: false, default_value: '1.5' },
        { name: 'photo', type: 'BLOB', notnull: false, pk: false, default_value: null },
      ],
      row_count: 2,
    }
    const [asked, described] = await run()
    expect(asked).toMatchObject({
      columns: ['name', 'price'],
      rows: [
        ['tea', 1.5],
        ['🍵', 1.5],
      ],
      truncated: false,
    })
    expect(described).toMatchObject({ database: 'shop', tables: [table] })
    // The API reads what workers have written.
    expect((await call(api, 'GET', `${path}/shop/schema`)).body).toEqual({ database: 'shop', tables: [table] })
    expect((await call(api, 'GET', `${path}/shop`)).body).toMatchObject({
      name: 'shop',
      page_count: 2,
      size_bytes: 8192,
    })
  })

  it('answer bad calls with a sentence, and make no database for them', async () => {
    const { path, run } = await createTurns([
      ['sql_query', { database: 'notes', sql: 'SELECT 1' }],
      ['sql_execute', { database: 'no-name', sql: 'SELECT 1' }],
      ['sql_execute', { database: 'notes', sql: 'CREAT TABLE a (b)' }],
      [
        'sql_execute',
        { database: 'notes', sql: 'CREATE TABLE a (b); INSERT INTO a VALUES (1); INSERT INTO c VALUES (1)' },
      ],
      ['sql_execute', { database: 'notes', sql: 'CREATE TABLE a (b); INSERT INTO a VALUES (1)' }],
      ['sql_query', { database: 'missing', sql: 'SELECT 1' }],
      ['sql_schema', { database: 'missing' }],
      ['sql_query', { database: 'notes', sql: 'DELETE FROM a' }],
      ['sql_query', { database: 'notes', sql: 'SELECT 1; DELETE FROM a' }],
      ['sql_execute', { database: 'notes', sql: 'SELECT ?', params: [[1]] }],
      ['sql_query', { database: 'notes', sql: 'SELECT count(*) FROM a' }],
    ])
    const [none, badName, syntax, noTable, filled, ...rest] = await run()
    expect(none).toBe('There is no database notes; there is none yet: sql_execute makes one')
    expect(badName).toBe(`${SAYS_HOW.replace('name:', 'database')}.`)
    expect(syntax).toMatch(/syntax error/)
    expect(noTable).toMatch(/no such table: c/)
    expect(filled).toMatchObject({ rows_affected: 1 })
    expect(rest.slice(0, 2)).toEqual(Array(2).fill('There is no database missing; there are notes'))
    for (const refused of rest.slice(2, 5)) expect(typeof refused).toBe('string')
    expect(rest[5].rows).toEqual([[1]])
    expect((await call(api, 'GET', path)).body.data.map(({ name }: Json) => name)).toEqual(['notes'])
  })

  it('make no 11th database', async () => {
    const { path, run } = await createTurns([['sql_execute', { database: 'more', sql: 'CREATE TABLE a (b)' }]])
    for (let index = 0; index < 10; index++) await call(api, 'POST', path, { name: `d${index}` })
    expect(await run()).toEqual(['A session has at most 10 databases; delete one first'])
  })

  it('give 1 MB of rows at once', async () => {
    const rows =
      "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i, printf('%.*c', 900, 'x') FROM n"
    const { run } = await createTurns([['sql_execute', { database: 'notes', sql: rows }]])
    const [{ rows: given, truncated }] = await run()
    expect([given.length, truncated]).toEqual([1000, true])
  })

  it('go on with an empty database when theirs is deleted in between', async () => {
    const fill: ScriptedCall = ['sql_execute', { database: 'a', sql: 'CREATE TABLE b (c); INSERT INTO b VALUES (1)' }]
    const ask: ScriptedCall = ['sql_query', { database: 'a', sql: 'SELECT * FROM b' }]
    const { path, run } = await createTurns([fill], [ask, fill, ask])
    await run()
    expect((await call(api, 'DELETE', `${path}/a`)).status).toBe(204)
    const [missing, filled, asked] = await run()
    expect(missing).toBe('There is no database a; there is none yet: sql_execute makes one')
    expect([filled, asked]).toMatchObject([{ rows_affected: 1 }, { rows: [[1]] }])
  })
})
