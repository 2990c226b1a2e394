import { randomUUID } from 'node:crypto'
import { readdirSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSqliteRunner } from '../../../domain/session-data/databases/sqlite-runner/create-sqlite-runner.ts'
import type { Param, SqliteRunner, Store } from '../../../domain/session-data/databases/sqlite-runner/sqlite-runner.ts'
import { leastLiveBytes } from '../../support/heap.ts'
import { createMemorySource, dumpSource, type MemorySource } from './memory-source.ts'

let runner: SqliteRunner
let signal: AbortSignal
beforeAll(() => {
  runner = createSqliteRunner()
})
beforeEach(() => {
  signal = new AbortController().signal
})
afterAll(() => runner.close())

const execute = (source: MemorySource, sql: string, params?: Param[], store: Store = source.store) =>
  runner.execute(source, { sql, params }, store, {}, signal)
const query = (source: MemorySource, sql: string, params?: Param[]) => runner.query(source, { sql, params }, {}, signal)
const ENDLESS_ROWS = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c'
const done = (result: object) => ({ outcome: 'done', result })

describe('a database in the SQLite runner', () => {
  it('keeps what scripts change, as pages that make a database anywhere', async () => {
    const source = createMemorySource()
    const script = "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t (b) VALUES ('x;y'), (2); -- the end"
    expect(await execute(source, script)).toEqual(done({ rows_affected: 2, last_insert_rowid: 2 }))
    expect(await query(source, 'SELECT b, a AS b FROM t')).toEqual(
      done({ columns: ['b', 'b'], rows: [['x;y', 1], [2, 2]], truncated: false, row_count: 2 }), // biome-ignore format: short
    )
    const returned = { columns: ['a'], rows: [[2]], truncated: false }
    expect(await execute(source, 'UPDATE t SET b = ? WHERE a = ? RETURNING a', [true, 2])).toEqual(
      done({ rows_affected: 1, ...returned }),
    )
    const other = createSqliteRunner()
    expect(await other.query(source, { sql: 'SELECT b, typeof(b) FROM t' }, {}, signal)).toMatchObject({
      result: { rows: [['x;y', 'text'], [1, 'integer']] }, // biome-ignore format: short
    })
    await other.close()
    expect([source.version, source.reads]).toEqual([2, [0, 1, 1, 0]])
    expect(source.stored[1]?.numbers).toEqual([2])
    // It is in WAL mode from its first page on.
    expect([...source.toFile().slice(18, 20)]).toEqual([2, 2])
  })

  it('gives values as JSON can hold them, and takes them as they are meant', async () => {
    const values = "9007199254740991, 9007199254740993, -9223372036854775808, 1e999, -0.5, 0.1, x'00ff', NULL, 'é', ''"
    const expected = [2 ** 53 - 1, '9007199254740993', '-9223372036854775808', 'Infinity', -0.5, 0.1, 'AP8=', null]
    expect(await query(createMemorySource(), `SELECT ${values}`)).toMatchObject({
      result: { rows: [[...expected, 'é', '']] },
    })
    const params = [1, 1.5, 2 ** 53, true, null, 'é']
    const types = ['integer', 'real', 'real', 'integer', 'null', 'text']
    expect(await query(createMemorySource(), `SELECT ${params.map(() => 'typeof(?)')}`, params)).toMatchObject({
      result: { rows: [types] },
    })
  })

  it('describes what users have made', async () => {
    const source = createMemorySource()
    const script = `CREATE TABLE "a ""b" (id INTEGER PRIMARY KEY AUTOINCREMENT, n TEXT NOT NULL DEFAULT 'x', m AS (n));
      INSERT INTO "a ""b" DEFAULT VALUES; CREATE VIRTUAL TABLE f USING fts5(words); CREATE INDEX i ON "a ""b" (n);
      INSERT INTO f VALUES ('one two'), ('three'); CREATE VIEW v AS SELECT n FROM "a ""b"; CREATE VIEW w AS SELECT * FROM gone`
    expect(await execute(source, script)).toMatchObject({ outcome: 'done', result: { rows_affected: 3 } })
    const column = { type: '', notnull: false, pk: false, default_value: null }
    const columns = [
      { ...column, name: 'id', type: 'INTEGER', pk: true },
      { ...column, name: 'n', type: 'TEXT', notnull: true, default_value: "'x'" },
      { ...column, name: 'm' },
    ]
    const tables = [
      { name: 'a "b', row_count: 1, columns },
      { name: 'f', row_count: 2, columns: [{ ...column, name: 'words' }] },
      { name: 'v', row_count: null, columns: [{ ...column, name: 'n', type: 'TEXT' }] },
      { name: 'w', row_count: null, columns: [] },
    ]
    expect(await runner.describe(source, {}, signal)).toEqual(done({ tables, truncated: false }))
    expect(await runner.describe(createMemorySource(), {}, signal)).toEqual(done({ tables: [], truncated: false }))
    expect(await query(source, "SELECT * FROM f WHERE f MATCH 'two'")).toMatchObject({ result: { row_count: 1 } })
  })

  it('describes it also when tables have the names of PRAGMAs', async () => {
    const source = createMemorySource()
    await execute(source, 'CREATE TABLE pragma_table_list (z); CREATE VIEW pragma_table_xinfo AS SELECT 1 AS name')
    const names = ['pragma_table_list', 'pragma_table_xinfo']
    expect(await runner.describe(source, {}, signal)).toMatchObject(
      done({ tables: names.map((name) => ({ name, columns: [{ name: name.endsWith('list') ? 'z' : 'name' }] })) }),
    )
  })

  it('counts the rows that statements change, and no others', async () => {
    const three = 'INSERT INTO t VALUES (1), (2), (3)'
    const words = "INSERT INTO f VALUES ('a'), ('b')"
    for (const [sql, affected, rowid] of [
      [`${three}; DROP TABLE x`, 3, 3],
      [`${three}; ALTER TABLE t ADD COLUMN b`, 3, 3],
      [`${three}; CREATE VIEW v AS SELECT 1; DROP VIEW v; REINDEX; ANALYZE`, 3, 3],
      [`${three}; UPDATE t SET a = 1 WHERE a > 1; SELECT 1`, 5, 3],
      [`CREATE VIRTUAL TABLE f USING fts5(x); ${words}`, 2, 2],
      [`CREATE VIRTUAL TABLE f USING fts5(x); ${words}; SELECT 1`, 2, 2],
      ['CREATE VIRTUAL TABLE f USING fts5(x)', 0, undefined],
      // Only the returned rows are read.
      [`CREATE VIRTUAL TABLE f USING fts5(x); ${words}; ${ENDLESS_ROWS}`, 2, 2],
    ] as const) {
      const source = createMemorySource()
      await execute(source, 'CREATE TABLE t (a); CREATE TABLE x (a); INSERT INTO x VALUES (1), (2)')
      const ran = await execute(source, sql)
      const counts = ran.outcome === 'done' && [ran.result.rows_affected, ran.result.last_insert_rowid]
      expect({ sql, counts }).toEqual({ sql, counts: [affected, rowid] })
    }
  })

  it('gives at most 1,000 rows and 1 MB, and reads no further', async () => {
    const source = createMemorySource()
    const endless = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)'
    for (const [sql, rows] of [
      [`${endless} SELECT x FROM c LIMIT 1000`, 1000],
      [`${endless} SELECT x FROM c`, 1000],
      [`${endless} SELECT zeroblob(75000) FROM c`, 9],
      ['SELECT zeroblob(1000000)', 0],
    ] as const) {
      const truncated = !sql.includes('LIMIT')
      expect(await query(source, sql)).toMatchObject({ result: { row_count: rows, truncated } })
      expect(await execute(source, sql)).toMatchObject({ result: { truncated } })
    }
    const returning = `CREATE TABLE t (a); INSERT INTO t ${endless} SELECT x FROM c LIMIT 3000 RETURNING a`
    expect(await execute(source, returning)).toMatchObject({ result: { rows_affected: 3000, truncated: true } })
    expect(await query(source, 'SELECT count(*) FROM t')).toMatchObject({ result: { rows: [[3000]] } })
  })

  it('keeps nothing of a script that fails anywhere', async () => {
    const source = createMemorySource()
    await execute(
      source,
      'CREATE TABLE t (a UNIQUE); CREATE TABLE r (a REFERENCES t (a) DEFERRABLE INITIALLY DEFERRED)',
    )
    await execute(source, 'INSERT INTO t VALUES (1)')
    const before = dumpSource(source)
    const fill =
      'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) INSERT INTO t SELECT randomblob(9000) FROM c'
    const cases: [sql: string, message: RegExp][] = [
      ['INSERT INTO t VALUES (2); INSERT INTO t VALUES (1)', /^UNIQUE constraint failed: t.a$/],
      [
        'INSERT INTO t VALUES (2); INSERT OR ROLLBACK INTO t VALUES (1); INSERT INTO t VALUES (3)',
        /^UNIQUE constraint/,
      ],
      ['INSERT INTO r VALUES (2)', /^FOREIGN KEY constraint failed$/],
      ['INSERT INTO t VALUES (2); SELEC', /^near "SELEC": syntax error$/],
      ['INSERT INTO t VALUES (2); COMMIT; INSERT INTO nowhere VALUES (1)', /^COMMIT is not available/],
      [`INSERT INTO t VALUES (2); ${fill}`, /^The database would be larger than 50 MiB\. Delete/],
      ['DELETE FROM t; CREATE TEMP TABLE x (a)', /^Temporary tables/],
    ]
    for (const [sql, message] of cases) {
      expect(await execute(source, sql)).toEqual({ outcome: 'sql_error', message: expect.stringMatching(message) })
    }
    expect([source.version, source.stored.length]).toEqual([2, 2])
    expect(await execute(source, 'UPDATE t SET a = 5')).toMatchObject({ outcome: 'done' })
    expect(await query(source, 'SELECT (SELECT group_concat(a) FROM t), (SELECT count(*) FROM r)')).toMatchObject({
      result: { rows: [['5', 0]] },
    })
    expect(dumpSource(source)).not.toEqual(before)
  })

  it('refuses what reaches outside of the database or of the call, with a sentence', async () => {
    const source = createMemorySource()
    await execute(source, 'CREATE TABLE t (a); CREATE VIRTUAL TABLE f USING fts5(a)')
    const stored = source.stored.length
    const both: [sql: string, message: RegExp][] = [
      ["ATTACH '/tmp/x.db' AS x", /^ATTACH is not available/],
      ['DETACH main', /^DETACH is not available/],
      ['VACUUM', /^VACUUM is not available/],
      ["VACUUM INTO '/tmp/x.db'", /^VACUUM is not available/],
      ["SELECT load_extension('/tmp/x.so')", /^The function load_extension is not available/],
      ["SELECT fts3_tokenizer('x')", /^The function fts3_tokenizer is not available/],
      ['BEGIN', /^BEGIN is not available: each call is one transaction/],
      ['COMMIT', /^COMMIT is not available/],
      ['END', /^COMMIT is not available/],
      ['ROLLBACK', /^ROLLBACK is not available/],
      ['PRAGMA journal_mode = DELETE', /^PRAGMA journal_mode can only be read, not set$/],
      ['PRAGMA user_version = 5', /^PRAGMA user_version can only be read, not set$/],
      ['PRAGMA foreign_keys = OFF', /^PRAGMA foreign_keys can only be read/],
      ['PRAGMA writable_schema = ON', /^PRAGMA writable_schema is not available/],
      ['PRAGMA database_list', /^PRAGMA database_list is not available/],
      ['SELECT * FROM pragma_database_list', /^PRAGMA database_list is not available/],
      ['PRAGMA max_page_count = 100000', /^PRAGMA max_page_count is not available/],
      ['PRAGMA wal_checkpoint', /^PRAGMA wal_checkpoint is not available/],
      ["PRAGMA temp_store_directory = '/tmp'", /^PRAGMA temp_store_directory is not available/],
      ['CREATE TEMP TABLE x (a)', /^Temporary tables/],
      ['CREATE TABLE temp.x (a)', /^Temporary tables/],
      ['CREATE TEMP VIEW x AS SELECT 1', /^Temporary tables/],
      ['CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END', /^Temporary tables/],
      ['CREATE VIRTUAL TABLE temp.x USING fts5(a)', /^Temporary tables/],
      [
        "CREATE VIRTUAL TABLE x USING csv(filename='/etc/passwd')",
        /^Virtual tables that use csv are not available, only/,
      ],
      ['CREATE VIRTUAL TABLE x USING dbstat', /^Virtual tables that use dbstat are not available/],
      ['SELECT 1\0; DROP TABLE t', /^SQL cannot contain the character NUL$/],
      [' ; -- nothing', /^The SQL has no statement$/],
      ['', /^The SQL has no statement$/],
      [`SELECT '${'x'.repeat(1_000_000)}'`, /^SQL may have at most 1 MB$/],
      ['SELECT zeroblob(30000000)', /^A value may have 20 MB/],
      ['SELECT "x', /^unrecognized token/],
    ]
    for (const [sql, message] of both) {
      const expected = { sql, outcome: 'sql_error', message: expect.stringMatching(message) }
      expect({ sql, ...(await query(source, sql)) }).toEqual(expected)
      expect({ sql, ...(await execute(source, sql)) }).toEqual(expected)
    }
    const scripts: [sql: string, params: Param[], message: RegExp][] = [
      [
        'CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT load_extension(1); END; INSERT INTO t VALUES (1)',
        [],
        /load_ext/,
      ],
      ['INSERT INTO f_data VALUES (1, 2)', [], /^table f_data may not be modified$/],
      ['UPDATE sqlite_schema SET sql = 1', [], /^table sqlite_master may not be modified$/],
      ['INSERT INTO t VALUES (? + ?)', [1], /^The SQL has more placeholders than there are params \(1\)$/],
      ['DELETE FROM t WHERE a = ?', [], /^The SQL has more placeholders than there are params \(0\)$/],
      ['DELETE FROM t WHERE a = ?', [1, 2], /^There are more params \(2\) than placeholders/],
      ['DELETE FROM t WHERE a = :name', [], /^Placeholders must be \? or \?1, with a param for each/],
      ['DELETE FROM t WHERE a = :name', [1], /^There are more params \(1\) than placeholders.*must be \?/],
      ['DELETE FROM t WHERE a = ?; SELECT 1', [1], /^With params, the SQL must be a single statement$/],
    ]
    for (const [sql, params, message] of scripts) {
      const expected = { sql, outcome: 'sql_error', message: expect.stringMatching(message) }
      expect({ sql, ...(await execute(source, sql, params)) }).toEqual(expected)
    }
    const writes = [
      ...[
        'INSERT INTO t VALUES (1)',
        'DROP TABLE t',
        'CREATE TABLE x (a)',
        'CREATE INDEX i ON t (a)',
        'ANALYZE',
        'REINDEX',
      ],
      ...["INSERT INTO f (f) VALUES ('optimize')", 'ALTER TABLE t RENAME TO u', 'DELETE FROM t RETURNING a'],
      'WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c',
    ]
    for (const sql of writes) {
      const expected = { sql, outcome: 'sql_error', message: expect.stringMatching(/^A query can only read;/) }
      expect({ sql, ...(await query(source, sql)) }).toEqual(expected)
    }
    expect(await query(source, 'SELECT 1; DROP TABLE t')).toMatchObject({
      message: expect.stringMatching(/^A query is one/),
    })
    expect([source.version, source.stored.length]).toEqual([1, stored])
  })

  it('allows what reads the database, and every kind of table that is of use', async () => {
    const source = createMemorySource()
    const scripts = [
      'CREATE TABLE t (a INTEGER PRIMARY KEY, b); SAVEPOINT s; INSERT INTO t VALUES (1, 2); ROLLBACK TO s; RELEASE s',
      'CREATE VIRTUAL TABLE g USING geopoly(); CREATE VIRTUAL TABLE r USING rtree(id, x, y); INSERT INTO r VALUES (1, 2, 3)',
      "CREATE VIRTUAL TABLE f USING fts5(b, content='t', content_rowid='a'); INSERT INTO f (f) VALUES ('rebuild')",
      'CREATE VIRTUAL TABLE o USING fts4(b); CREATE VIRTUAL TABLE v USING fts5vocab(f, row); DROP TABLE v',
      'CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO f (rowid, b) VALUES (new.a, new.b); END; SAVEPOINT open',
      "INSERT INTO t (b) VALUES ('one two'); ALTER TABLE t ADD COLUMN c; ALTER TABLE t RENAME COLUMN c TO d; ANALYZE; REINDEX",
      "CREATE TABLE j AS SELECT value FROM json_each('[1,2]'); DROP TABLE o; EXPLAIN SELECT 1",
    ]
    for (const sql of scripts) expect({ sql, ...(await execute(source, sql)) }).toMatchObject({ sql, outcome: 'done' })
    const queries: [sql: string, rows: unknown][] = [
      ['PRAGMA table_info(j)', [[0, 'value', '', 0, null, 0]]],
      ["SELECT name FROM pragma_table_xinfo('j')", [['value']]],
      ['PRAGMA integrity_check', [['ok']]],
      ['PRAGMA foreign_keys', [[1]]],
      ["SELECT count(*) FROM f, r WHERE f MATCH 'two' AND x > 1", [[1]]],
      ['EXPLAIN QUERY PLAN SELECT 1', expect.anything()],
    ]
    for (const [sql, rows] of queries)
      expect({ sql, ...(await query(source, sql)) }).toMatchObject({ sql, result: { rows } })
    expect(dumpSource(source)).toMatchObject({ check: [{ integrity_check: 'ok' }] })
  })

  it('runs a script again on what others have stored, and gives up when that never ends', async () => {
    const source = createMemorySource()
    const other = createSqliteRunner()
    const inOther = (sql: string) => other.execute(source, { sql }, source.store, {}, signal)
    await execute(source, 'CREATE TABLE t (a); INSERT INTO t VALUES (0)')
    let times = 0
    const store: Store = async (changes, result) => {
      if (++times <= 2) await inOther('UPDATE t SET a = a + 10')
      return source.store(changes, result)
    }
    expect(await execute(source, 'UPDATE t SET a = a + 1 RETURNING a', [], store)).toMatchObject({
      result: { rows: [[21]] },
    })
    expect(await inOther('SELECT a FROM t')).toMatchObject({ result: { rows: [[21]] } })
    expect(await execute(source, 'UPDATE t SET a = 7', [], async () => 'conflict')).toMatchObject({
      outcome: 'conflict',
    })
    expect(await query(source, 'SELECT a FROM t')).toMatchObject({ result: { rows: [[21]] } })
    await other.close()
  })

  it('records the result of a script that has changed nothing', async () => {
    const source = createMemorySource()
    const results: unknown[] = []
    const store: Store = async ({ version, pageCount, numbers, bytes }, result) => {
      results.push([version, pageCount, numbers, bytes.length, result.rows])
      return 'stored'
    }
    await execute(source, 'SELECT 1', [], store)
    await execute(source, 'CREATE TABLE t (a)')
    await execute(source, 'SAVEPOINT s; DELETE FROM t WHERE a = 1; RELEASE s; SELECT 2', [], store)
    expect(results).toEqual([[0, 0, [], 0, [[1]]], [1, 2, [], 0, [[2]]]]) // biome-ignore format: short
  })

  it('stores a page as it is in the end, however often a large script has written it', async () => {
    const source = createMemorySource()
    const fill = (table: string) => `CREATE TABLE ${table} (a INTEGER PRIMARY KEY, b);
      INSERT INTO ${table} (b) SELECT zeroblob(900) FROM json_each('[${'1,'.repeat(4000)}1]');`
    const spoilt = 'SAVEPOINT s; UPDATE t SET b = randomblob(900); DELETE FROM u; ROLLBACK TO s; RELEASE s;'
    // The rows of t push the rows of u out of SQLite's memory. The last one comes back, and is committed.
    const back = 'UPDATE t SET b = zeroblob(899); UPDATE u SET b = 5 WHERE a = 4001'
    expect(await execute(source, `${fill('t')} ${fill('u')} ${back}`)).toMatchObject({ outcome: 'done' })
    expect(await execute(source, `${spoilt} UPDATE u SET b = 5 WHERE a = 1`)).toMatchObject({ outcome: 'done' })
    const rows = { t: [4001, 4001 * 899], u: [4001, 3999 * 900 + 2] }
    const other = createSqliteRunner()
    for (const [table, row] of Object.entries(rows)) {
      const sql = `SELECT count(*), sum(length(b)) FROM ${table} WHERE b = 5 OR b = zeroblob(length(b))`
      expect(await other.query(source, { sql }, {}, signal)).toMatchObject({ result: { rows: [row] } })
    }
    await other.close()
  })

  it('looks up what was stored when storing fails, whether it was done or not', async () => {
    const source = createMemorySource()
    await execute(source, 'CREATE TABLE t (a)')
    const failing =
      (isDone: boolean) =>
      async (...args: Parameters<Store>) => {
        if (isDone) await source.store(...args)
        throw new Error('no connection')
      }
    for (const isDone of [true, false]) {
      const call = execute(source, `INSERT INTO t VALUES (${isDone})`, [], failing(isDone))
      await expect(call).rejects.toThrow('no connection')
    }
    expect(await query(source, 'SELECT a FROM t')).toMatchObject({ result: { rows: [[1]] } })
  })

  it('reads a damaged copy again, and says when the record is damaged itself', async () => {
    const source = createMemorySource()
    const well = createMemorySource()
    await execute(source, 'CREATE TABLE t (a); INSERT INTO t VALUES (1)')
    await execute(well, 'CREATE TABLE t (a)')
    const { bytes = new Uint8Array() } = source.pages.get(2) ?? {}
    const damaged = { version: 2, bytes: bytes.map(() => 0xff) }
    const { read } = source
    source.version = 2
    source.read = (since) => {
      source.pages.set(2, since === 1 ? damaged : { version: 2, bytes })
      return read(since)
    }
    expect(await query(source, 'SELECT a FROM t')).toMatchObject({ result: { rows: [[1]] } })
    expect(source.reads).toEqual([0, 1, 0])
    source.read = read
    source.version = 3
    source.pages.set(2, { ...damaged, version: 3 })
    expect(await query(source, 'SELECT a FROM t')).toEqual({
      outcome: 'damaged',
      message: expect.stringMatching(/^The database is damaged \(.*malformed/),
    })
    expect(await execute(source, 'DELETE FROM t')).toMatchObject({ outcome: 'damaged' })
    expect(await query(well, 'SELECT a FROM t')).toMatchObject({ outcome: 'done' })
    source.pages.set(2, { version: 3, bytes: bytes.slice(1) })
    expect(await query(source, 'SELECT a FROM t')).toEqual({
      outcome: 'damaged',
      message: 'The database is damaged (a page has another length)',
    })
    source.pages.set(2, { version: 3, bytes })
    expect(await query(source, 'SELECT a FROM t')).toMatchObject({ result: { rows: [[1]] } })
  })

  it('notices that a database is gone, before and after its script', async () => {
    const source = createMemorySource()
    await execute(source, 'CREATE TABLE t (a)')
    const leave: Store = async () => {
      source.isGone = true
      return 'gone'
    }
    const gone = { outcome: 'gone', message: 'The database was deleted' }
    expect(await execute(source, 'DROP TABLE t', [], leave)).toEqual(gone)
    expect(await query(source, 'SELECT 1')).toEqual(gone)
    expect(source.reads.at(-1)).toBe(0)
    const other = createMemorySource()
    await execute(other, 'CREATE TABLE t (a)')
    runner.forget(other.id)
    await query(other, 'SELECT 1')
    expect(other.reads.at(-1)).toBe(0)
  })

  it('is read again when its file has gone, or lost its end, and never stored without it', async () => {
    const source = createMemorySource()
    const own = createSqliteRunner()
    const run = (sql: string, store: Store = source.store) => own.execute(source, { sql }, store, {}, signal)
    const count = async () => (await own.query(source, { sql: 'SELECT count(*) FROM t' }, {}, signal)) as object
    const remove = () => {
      for (const name of readdirSync(folder)) rmSync(join(folder, name))
    }
    const before = readdirSync(tmpdir())
    await run(`CREATE TABLE t (a); INSERT INTO t ${ENDLESS_ROWS} LIMIT 3000`)
    const made = readdirSync(tmpdir()).find((name) => !before.includes(name) && name.includes(`-${process.pid}-`))
    const folder = join(tmpdir(), made ?? '')
    const spoils = [
      remove,
      () => truncateSync(join(folder, readdirSync(folder)[0] ?? ''), 4096),
      () => rmSync(folder, { recursive: true }),
    ]
    for (const [times, spoil] of spoils.entries()) {
      spoil()
      expect(await run('CREATE TABLE IF NOT EXISTS t (a); INSERT INTO t VALUES (7)')).toMatchObject(done({}))
      expect(await count()).toMatchObject({ result: { rows: [[3001 + times]] } })
    }
    await own.close()
  })

  it('that a script has failed to make leaves no copy', async () => {
    const [kept, source] = [createMemorySource(), createMemorySource()]
    const own = createSqliteRunner({ diskBytes: 9000 })
    await own.execute(kept, { sql: 'CREATE TABLE t (a)' }, kept.store, {}, signal)
    for (let times = 0; times < 3; times++) {
      const failed = { ...source, id: randomUUID() }
      expect(await own.execute(failed, { sql: 'SELEC' }, source.store, {}, signal)).toMatchObject({
        outcome: 'sql_error',
      })
    }
    expect(source.reads).toEqual([0, 0, 0])
    await own.query(kept, { sql: 'SELECT 1' }, {}, signal)
    expect(kept.reads.at(-1)).toBe(1)
    await own.close()
  })

  it('keeps no answers in memory', async () => {
    const source = createMemorySource()
    const large = "SELECT printf('%.*c', 900000, 'x')"
    for (let times = 0; times < 5; times++) await query(source, large)
    const before = await leastLiveBytes()
    for (let times = 0; times < 40; times++) await query(source, large)
    expect((await leastLiveBytes()) - before).toBeLessThan(10_000_000)
  })
})
