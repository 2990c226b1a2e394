import type { Deps } from '../../domain/deps.ts'
import { newUuid } from '../../domain/kit/ids.ts'
import { createSqliteRunner } from '../../domain/session-data/databases/sqlite-runner/create-sqlite-runner.ts'
import { PAGE_BYTES, type SqliteRunner } from '../../domain/session-data/databases/sqlite-runner/sqlite-runner.ts'
import { cancelTurns } from '../../domain/turns/control/cancel.ts'
import { reason } from '../../domain/turns/run/reason.ts'
import { failTool, runTool } from '../../domain/turns/run/tool.ts'
import type { TurnPlace } from '../../domain/turns/turn-place.ts'
import { deleteOwnedData } from '../../domain/upkeep/session-deletion/owned-data.ts'
import { ANYBODY, withWorkflows } from '../support/by-hand.ts'
import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  listEvents,
  textMessage,
} from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { expectSoundRecord } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
let deps: Deps
/** Runners of two processes. */
let runners: SqliteRunner[] = []
beforeAll(async () => {
  service = await startService({ worker: false })
  const nothing = async () => {}
  deps = withWorkflows(service.platform.deps, { startTurn: nothing, resumeTurn: nothing, cancelTurn: nothing })
  runners = [deps.sqliteRunner, createSqliteRunner()]
})
afterAll(async () => {
  await runners[1]?.close()
  await service.stop()
})

type Calls = { id: string; turn: TurnPlace; run: (position: number, of?: Deps, claim?: Attempt) => Promise<unknown> }
type Attempt = { fence: number; signal: AbortSignal }
const attempt = (fence: number, signal = new AbortController().signal): Attempt => ({ fence, signal })
const sql = (text: string) => ['sql_execute', { database: 'd', sql: text }] as const
const QUERY = ['sql_query', { database: 'd', sql: 'SELECT n FROM t' }] as const
const MAKE = sql('CREATE TABLE t (n); INSERT INTO t VALUES (0)')
const ADD = sql('UPDATE t SET n = n + 1 RETURNING n')

/** Creates a turn whose model has made these calls at once. None of them has run yet. */
async function createCalls(...calls: (readonly [string, object])[]): Promise<Calls> {
  const tool_calls = calls.map(([name, args], index) => ({ id: `${index}`, name, arguments: args }))
  const capabilities = [{ ref: 'session_sql_database' }]
  const id = await createScriptedSession(service.url, [{ tool_calls }, { text: 'done' }], { capabilities })
  const message = (await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))).body
  const turn = { organizationId: ANYBODY.organizationId, sessionId: toUuid(id), turnId: toUuid(message.id) }
  expect(await reason(deps, turn, 1, attempt(1))).toMatchObject({ outcome: 'act' })
  return { id, turn, run: (position, of = deps, claim = attempt(1)) => runTool(of, turn, 1, position, claim) }
}

/** Returns the values of the calls that have a result, or their errors, by their place. */
async function resultsOf(id: string): Promise<Json[]> {
  const events = await listEvents(service.url, id)
  expectSoundRecord(events)
  const results: Json[] = []
  for (const { type, data } of events) {
    if (type !== 'tool.completed') continue
    results[data.tool_call_id] =
      data.status === 'success' ? JSON.parse(data.result[0].text) : (data.error ?? data.status)
  }
  return results
}

/** Runs `between` once, when an attempt stores: before that reaches the database, or after it has been committed. */
function withStore(when: 'before' | 'after', between: () => Promise<unknown>): Deps {
  let isDone = false
  const once = async () => {
    if (isDone) return
    isDone = true
    await between()
  }
  const store: Deps['databaseStore']['store'] = async (stored) => {
    if (when === 'before') await once()
    const answer = await deps.databaseStore.store(stored)
    if (when === 'after') await once()
    return answer
  }
  return { ...deps, databaseStore: { ...deps.databaseStore, store } }
}

const databasesOf = async (id: string): Promise<string[]> =>
  (await call(service.url, 'GET', `/v1/sessions/${id}/databases`)).body.data.map(({ name }: Json) => name)
const deleteD = (id: string) => call(service.url, 'DELETE', `/v1/sessions/${id}/databases/d`)

/** Expects that the session has pages of its databases and no others. */
async function expectSound(sessionId: string): Promise<void> {
  const [row] = await deps.db.$queryRaw<object[]>`
    SELECT count(*)::int AS orphans FROM session_database_pages p WHERE session_id = ${sessionId}::uuid AND NOT EXISTS (
      SELECT FROM session_databases d
      WHERE d.id = p.database_id AND p.number BETWEEN 1 AND d.page_count AND p.version BETWEEN 1 AND d.version)`
  expect(row).toEqual({ orphans: 0 })
}

describe('two processes that write one database at once', () => {
  it('lose no change', async () => {
    const { id, turn, run } = await createCalls(MAKE, ...Array(12).fill(ADD), QUERY)
    await run(0)
    await Promise.all(Array.from({ length: 12 }, (_, n) => run(n + 1, { ...deps, sqliteRunner: runnerOf(n) })))
    await run(13)
    const results = await resultsOf(id)
    expect(results[13].rows).toEqual([[12]])
    // Each call was given another state.
    const seen = results.slice(1, 13).map(({ rows }) => rows[0][0])
    expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, n) => n + 1))
    expect(await deps.db.sessionDatabase.findFirst({ where: { sessionId: turn.sessionId } })).toMatchObject({
      version: 13,
    })
    await expectSound(turn.sessionId)
  })

  it('make it once, also when a clock is set forward meanwhile', async () => {
    const now = Date.now
    const clock = jest.spyOn(Date, 'now')
    const makes = sql('CREATE TABLE IF NOT EXISTS t (n); INSERT INTO t VALUES (1)')
    const { id, turn, run } = await createCalls(makes, makes, QUERY)
    await run(
      0,
      withStore('before', () => {
        clock.mockImplementation(() => now() + 10 * 60_000)
        return run(1, { ...deps, sqliteRunner: runnerOf(1) })
      }),
    ).finally(() => clock.mockRestore())
    await run(2)
    expect((await resultsOf(id))[2].rows).toEqual([[1], [1]])
    expect(await databasesOf(id)).toEqual(['d'])
    await expectSound(turn.sessionId)
  })
})
const runnerOf = (n: number): SqliteRunner => runners[n % 2] ?? deps.sqliteRunner

describe('a call whose process died after it had stored its changes', () => {
  it('has made them once, and answers what the first attempt did', async () => {
    const { id, turn, run } = await createCalls(
      MAKE,
      sql("UPDATE t SET n = n + 1; SELECT n, char(0) || 'x' AS x FROM t"),
      ADD,
    )
    await run(0)
    const died = new AbortController()
    const dying = withStore('after', async () => {
      died.abort(new Error('the process dies'))
      throw died.signal.reason
    })
    await expect(run(1, dying, attempt(1, died.signal))).rejects.toThrow('the process dies')
    await run(2, { ...deps, sqliteRunner: runnerOf(1) })
    await run(1, { ...deps, sqliteRunner: runnerOf(1) }, attempt(2))
    const results = await resultsOf(id)
    expect(results[1]).toMatchObject({ rows_affected: 1, columns: ['n', 'x'], rows: [[1, '\ufffdx']] })
    expect(results[2].rows).toEqual([[2]])
    await expectSound(turn.sessionId)
  })

  it('answers also when the database is deleted since', async () => {
    const { id, run } = await createCalls(MAKE)
    const died = new AbortController()
    const dying = withStore('after', async () => {
      died.abort(new Error('the process dies'))
      throw died.signal.reason
    })
    await expect(run(0, dying, attempt(1, died.signal))).rejects.toThrow('the process dies')
    await deleteD(id)
    await run(0, deps, attempt(2))
    expect((await resultsOf(id))[0]).toMatchObject({ rows_affected: 1 })
    expect(await databasesOf(id)).toEqual([])
  })
})

describe('a call that loses Postgres', () => {
  it.each(['before', 'after'] as const)('%s it stores is run again, and changes once', async (when) => {
    const { id, turn, run } = await createCalls(MAKE, ADD, QUERY)
    await run(0)
    const lost = withStore(when, async () => {
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    })
    await expect(run(1, lost)).rejects.toThrow('ECONNRESET')
    await run(1, deps, attempt(2))
    await run(2)
    expect((await resultsOf(id)).slice(1)).toMatchObject([{ rows: [[1]] }, { rows: [[1]] }])
    await expectSound(turn.sessionId)
  })
})

describe('an attempt that may not write any more', () => {
  it('changes nothing when a newer one has begun, which does', async () => {
    const { id, run } = await createCalls(MAKE, ADD, QUERY)
    await run(0)
    const newer = () => run(1, { ...deps, sqliteRunner: runnerOf(1) }, attempt(2))
    await expect(run(1, withStore('before', newer))).rejects.toThrow('newer attempt')
    await run(2)
    expect((await resultsOf(id)).slice(1)).toMatchObject([{ rows: [[1]] }, { rows: [[1]] }])
  })

  it('makes no database when its turn has ended', async () => {
    const { id, turn, run } = await createCalls(MAKE)
    const cancel = () => cancelTurns(deps, ANYBODY, toUuid(id))
    expect(await run(0, withStore('before', cancel))).toEqual({ outcome: 'ended' })
    expect([await databasesOf(id), await resultsOf(id)]).toEqual([[], ['The turn was cancelled.']])
    await expectSound(turn.sessionId)
  })

  it('makes no database when it took too long and has its result', async () => {
    const { id, turn, run } = await createCalls(MAKE)
    await expect(
      run(
        0,
        withStore('before', () => failTool(deps, turn, 1, 0)),
      ),
    ).rejects.toThrow('newer attempt')
    expect(await databasesOf(id)).toEqual([])
    await expectSound(turn.sessionId)
  })
})

describe('a database that is deleted while a script runs on it', () => {
  it('is missing for the script, which makes it anew', async () => {
    const { id, turn, run } = await createCalls(
      MAKE,
      ADD,
      sql('CREATE TABLE IF NOT EXISTS t (n); INSERT INTO t VALUES (7)'),
      QUERY,
    )
    await run(0)
    await run(
      1,
      withStore('before', () => deleteD(id)),
    )
    expect((await resultsOf(id))[1]).toMatch(/no such table: t/)
    expect(await databasesOf(id)).toEqual([])
    await run(
      2,
      withStore('before', () => deleteD(id)),
    )
    await run(3)
    expect((await resultsOf(id))[3].rows).toEqual([[7]])
    await expectSound(turn.sessionId)
  })

  it('leaves nothing in the session, which is deleted', async () => {
    const { id, turn, run } = await createCalls(MAKE)
    const deleted = withStore('before', () => call(service.url, 'DELETE', `/v1/sessions/${id}`))
    expect(await run(0, deleted)).toEqual({ outcome: 'ended' })
    await deleteOwnedData(deps, turn.sessionId)
    await expectSound(turn.sessionId)
    expect(await deps.db.sessionDatabasePage.count({ where: { sessionId: turn.sessionId } })).toBe(0)
  })
})

describe('a database with a damaged page', () => {
  it('is refused with a sentence, and can be deleted', async () => {
    const { id, turn, run } = await createCalls(MAKE, QUERY, ADD, MAKE)
    await run(0, { ...deps, sqliteRunner: runnerOf(1) })
    await deps.db.sessionDatabasePage.updateMany({
      where: { sessionId: turn.sessionId, number: 2 },
      data: { bytes: Buffer.alloc(PAGE_BYTES, 0xff) },
    })
    const schema = await call(service.url, 'GET', `/v1/sessions/${id}/databases/d/schema`)
    expectError(schema, 422, /^The database is damaged/)
    await run(1)
    await run(2)
    expect((await resultsOf(id)).slice(1)).toEqual(Array(2).fill(expect.stringMatching(/^The database is damaged/)))
    expect((await deleteD(id)).status).toBe(204)
    await run(3)
    expect((await resultsOf(id))[3]).toMatchObject({ rows_affected: 1 })
    await expectSound(turn.sessionId)
  })
})

describe('the pages of a database', () => {
  const PAGES = 600
  const all = Array.from({ length: PAGES }, (_, index) => index + 1)

  async function createPages() {
    const id = await createSession(service.url)
    const { body } = await call(service.url, 'GET', `/v1/sessions/${id}`)
    const place = { organizationId: toUuid(body.organization_id), sessionId: toUuid(id), databaseId: newUuid() }
    const write = (version: number, numbers: number[], pageCount = PAGES) =>
      deps.databaseStore.store({
        ...{ ...place, writer: undefined, version, pageCount, numbers, effect: '{}', maxCount: 10 },
        ...{ name: version === 0 ? 'd' : undefined, bytes: Buffer.alloc(numbers.length * PAGE_BYTES, version + 1) },
      })
    const read = async (since = 0) => {
      const numbers: number[] = []
      const values = new Set<number>()
      const { pages, version, pageCount } = (await deps.databaseStore.read(place, since)) ?? {}
      for await (const batch of pages ?? []) {
        expect(batch.bytes.length).toBe(batch.numbers.length * PAGE_BYTES)
        numbers.push(...batch.numbers)
        for (const value of batch.bytes) values.add(value)
      }
      return { version, pageCount, numbers, values: [...values] }
    }
    expect(await write(0, all)).toEqual({ outcome: 'stored' })
    return { place, write, read }
  }

  it('are read in one state, however fast another writes', async () => {
    const { write, read } = await createPages()
    let isDone = false
    const writing = (async () => {
      for (let version = 1; version < 30; version++) await write(version, all)
      isDone = true
    })()
    let reads = 0
    while (!isDone) {
      const seen = await read()
      expect(seen).toEqual({ version: seen.version, pageCount: PAGES, numbers: all, values: [seen.version] })
      reads++
    }
    await writing
    expect(await read()).toEqual({ version: 30, pageCount: PAGES, numbers: all, values: [30] })
    expect(reads).toBeGreaterThan(0)
  })

  it('can be read as changed since a version, without pages beyond the end', async () => {
    const { place, write, read } = await createPages()
    await write(1, [3, 600])
    await write(2, [1, 2], 300)
    expect(await read(1)).toEqual({ version: 3, pageCount: 300, numbers: [1, 2, 3], values: [3, 2] })
    expect((await read()).numbers).toEqual(all.slice(0, 300))
    expect(await write(2, [1])).toEqual({ outcome: 'conflict' })
    expect(await write(3, [])).toEqual({ outcome: 'stored' })
    expect(await read(3)).toEqual({ version: 3, pageCount: 300, numbers: [], values: [] })
    expect(await deps.databaseStore.read({ ...place, organizationId: newUuid() }, 0)).toBeUndefined()
  })
})
