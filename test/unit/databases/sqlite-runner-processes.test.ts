import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  createSqliteRunner,
  type SqliteRunnerOptions,
} from '../../../domain/session-data/databases/sqlite-runner/create-sqlite-runner.ts'
import type { SqliteRunner, Store } from '../../../domain/session-data/databases/sqlite-runner/sqlite-runner.ts'
import { createMemorySource } from './memory-source.ts'
import { computedBy, ENDLESS, isRunning, waitFor, watchProcesses } from './processes.ts'

const { signal } = new AbortController()
let runner: SqliteRunner
let watched: ReturnType<typeof watchProcesses>
const ids = () => watched.started.map(({ pid = 0 }) => pid)
const running = () => ids().filter(isRunning)
const start = (options?: SqliteRunnerOptions) => {
  runner = createSqliteRunner(options)
}
beforeEach(() => {
  watched = watchProcesses()
})
afterEach(async () => {
  watched.stop()
  await runner.close()
  expect(running()).toEqual([])
})

const SORTED = `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 300000)
  SELECT x FROM c ORDER BY randomblob(2000)`
/** More hundredths of a second than a process takes to start. */
const BUSY = 100

/** Store that waits, so that its call goes on. */
function createHeldStore(then: Store) {
  const { promise, resolve: release } = Promise.withResolvers<void>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const store: Store = async (...args) => {
    begin()
    await promise
    return then(...args)
  }
  return { store, begun, release }
}

describe('the processes of the SQLite runner', () => {
  it.each<[outcome: string, sql: string, options: SqliteRunnerOptions, message: RegExp]>([
    ['late', `INSERT INTO t VALUES (1); ${ENDLESS}`, { timeMs: 300 }, /^The SQL took longer than 0.3 seconds and was/],
    ['out_of_memory', SORTED, { memoryBytes: 200_000_000 }, /^The SQL needed too much memory and was stopped$/],
  ])('are ended by what takes too much, and nothing is changed: %s', async (outcome, sql, options, message) => {
    start(options)
    const source = createMemorySource()
    const run = (script: string) => runner.execute(source, { sql: script }, source.store, {}, signal)
    await run('CREATE TABLE t (a)')
    expect(await run(sql)).toEqual({ outcome, message: expect.stringMatching(message) })
    expect(running()).toEqual([])
    expect(await run('SELECT count(*) FROM t')).toMatchObject({ result: { rows: [[0]] } })
    // The copy was not lost.
    expect([source.version, source.reads]).toEqual([1, [0, 1, 1]])
  })

  it('are ended when the caller gives up', async () => {
    start()
    const controller = new AbortController()
    const query = runner.query(createMemorySource(), { sql: ENDLESS }, {}, controller.signal)
    await waitFor(() => computedBy(ids()[0] ?? 0) > BUSY)
    controller.abort(new Error('cancelled'))
    await expect(query).rejects.toThrow('cancelled')
    expect(running()).toEqual([])
  })

  it('end when the service is killed', async () => {
    start()
    const parent = fork(fileURLToPath(new URL('./sqlite-runner-parent.ts', import.meta.url)), { stdio: 'ignore' })
    const [id] = await once(parent, 'message')
    await waitFor(() => computedBy(id) > BUSY)
    parent.kill('SIGKILL')
    await waitFor(() => !isRunning(id))
  })

  it('are never all used by one organization, and a database has one call at a time', async () => {
    start()
    const held = createHeldStore(async () => 'stored')
    const sources = [1, 2, 3, 4].map(createMemorySource)
    const [first] = sources
    const owner = 'one'
    const calls = sources.map((source) => runner.execute(source, { sql: 'SELECT 1' }, held.store, { owner }, signal))
    await held.begun
    expect(await runner.query(createMemorySource(), { sql: 'SELECT 1' }, { owner: 'other' }, signal)).toMatchObject({
      outcome: 'done',
    })
    const more = Array.from({ length: 102 }, () => first && runner.query(first, { sql: 'SELECT 1' }, { owner }, signal))
    expect(await Promise.race(more)).toEqual({ outcome: 'busy', message: expect.stringMatching(/try again later$/) })
    held.release()
    const outcomes = (await Promise.all([...calls, ...more])).map((ran) => ran?.outcome)
    expect(outcomes.filter((outcome) => outcome === 'busy')).toHaveLength(2)
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(104)
    expect(watched.started).toHaveLength(4)
  })

  it('stay warm for a while, and copies for as long as there is room', async () => {
    start({ warmMs: 300, diskBytes: 20_000 })
    const sources = [1, 2, 3].map(createMemorySource)
    for (const source of sources) {
      await runner.execute(source, { sql: 'CREATE TABLE t (a)' }, source.store, {}, signal)
    }
    expect(watched.started).toHaveLength(1)
    for (const source of sources.toReversed()) await runner.query(source, { sql: 'SELECT 1' }, {}, signal)
    // Two have room. The third was read again, for which the second had to go.
    expect(sources.map(({ reads }) => reads)).toEqual([[0, 0], [0, 1], [0, 1]]) // biome-ignore format: short
    await waitFor(() => running().length === 0)
  })

  it('have a folder that is removed at the end, also by the next process', async () => {
    const prefix = join(tmpdir(), `session-databases-${hostname()}-`)
    const own = () =>
      readdirSync(tmpdir()).filter((name) => join(tmpdir(), name).startsWith(`${prefix}${process.pid}-`))
    const left = [`${prefix}${2 ** 30}-1-x`, `${prefix}${process.pid}-1-x`]
    for (const path of left) mkdirSync(path)
    const others = mkdtempSync(`${prefix}${process.ppid}-1-`)
    start({ idleMs: 1 })
    await runner.query(createMemorySource(), { sql: 'SELECT 1' }, {}, signal)
    // A copy that is not used any more, too.
    await waitFor(() => readdirSync(join(tmpdir(), own()[0] ?? '')).length === 0)
    expect([left.some(existsSync), existsSync(others), own().length]).toEqual([false, true, 1])
    rmSync(others, { recursive: true })
    await runner.close()
    expect(own()).toEqual([])
    const closed = runner.query(createMemorySource(), { sql: 'SELECT 1' }, {}, signal)
    await expect(closed).rejects.toThrow('The SQLite runner is closed.')
  })
})
