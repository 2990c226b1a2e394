import { DatabaseSync } from 'node:sqlite'
import { createSqliteRunner } from '../../../domain/session-data/databases/sqlite-runner/create-sqlite-runner.ts'
import type { Ran, SqliteRunner, Store } from '../../../domain/session-data/databases/sqlite-runner/sqlite-runner.ts'
import { countOf } from '../../support/counts.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { seedsOf } from '../../support/seeds.ts'
import { createMemorySource, dump, dumpSource } from './memory-source.ts'
import { watchProcesses } from './processes.ts'

/** Arbitrary statements, which may fail. Each has the same effect in any SQLite. */
const STATEMENTS: ((n: (below: number) => number) => string)[] = [
  (n) => `INSERT INTO t${n(3)} (b, c) VALUES (${n(1000)}, '${'x'.repeat(n(300))}'), (NULL, x'${'0a'.repeat(n(5000))}')`,
  (n) => `INSERT INTO t${n(3)} (a) VALUES (${n(50)})`,
  (n) => `UPDATE t${n(3)} SET b = b + 1, c = hex(zeroblob(${n(4000)})) WHERE a % ${1 + n(5)} = 0`,
  (n) => `DELETE FROM t${n(3)} WHERE a % ${1 + n(7)} = ${n(3)}`,
  (n) => `CREATE TABLE t${n(3)} (a INTEGER PRIMARY KEY, b, c)`,
  (n) => `CREATE TABLE IF NOT EXISTS t${n(3)} (a INTEGER PRIMARY KEY AUTOINCREMENT, b UNIQUE, c)`,
  (n) => `DROP TABLE IF EXISTS t${n(3)}`,
  (n) => `CREATE INDEX i${n(3)} ON t${n(3)} (b, c)`,
  (n) => `ALTER TABLE t${n(3)} ADD COLUMN d${n(3)} DEFAULT ${n(9)}`,
  (n) => `ALTER TABLE t${n(3)} RENAME TO t${n(3)}`,
  (n) =>
    `CREATE TRIGGER IF NOT EXISTS r${n(3)} AFTER DELETE ON t${n(3)} BEGIN INSERT INTO t${n(3)} (b) VALUES (old.a); END`,
  (n) => `SAVEPOINT s; UPDATE t${n(3)} SET c = zeroblob(${n(9000)}); ROLLBACK TO s; RELEASE s`,
  // More than SQLite keeps in memory, so that the WAL gets pages before anything is committed.
  (n) => `INSERT INTO t${n(3)} (c) SELECT zeroblob(9000 + value) FROM json_each('[${'1,'.repeat(400)}${n(100)}]')`,
  (n) => `DELETE FROM t${n(3)} WHERE length(c) > 8000`,
  (n) => `DELETE FROM t${n(3)} WHERE length(c) > 8000`,
  () => 'CREATE VIRTUAL TABLE IF NOT EXISTS f USING fts5(words)',
  (n) => `INSERT INTO f VALUES ('w${n(10)} w${n(100)} w${n(1000)}')`,
  (n) => `DELETE FROM f WHERE f MATCH 'w${n(10)}'`,
  () => 'SELECT nothing FROM nowhere',
]

type Kind = 'plain' | 'failing' | 'lost' | 'overtaken' | 'killed'
const OFTEN: Kind[] = ['plain', 'plain', 'overtaken']
const KINDS: Kind[] = [...OFTEN, ...OFTEN, ...OFTEN, ...OFTEN, 'failing', 'lost', 'killed', 'killed']

describe('random scripts', () => {
  it.each(seedsOf('databaseScripts'))(
    'end as in one SQLite, by two SQLite runners, whatever fails (seed %i)',
    async (seed) => {
      const random = createRandom(seed)
      const source = createMemorySource()
      const model = new DatabaseSync(':memory:')
      const runners = [createSqliteRunner(), createSqliteRunner()]
      const watched = watchProcesses()
      const counts = new Map<string, number>()
      for (let step = 0; step < countOf('databaseScripts'); step++) {
        const ended = await runStep(source, model, runners, random, watched)
        counts.set(ended, (counts.get(ended) ?? 0) + 1)
        if (step % 10 === 9)
          expect({ step, ...(dumpSource(source) as object) }).toEqual({ step, ...(dump(model) as object) })
      }
      watched.stop()
      await Promise.all(runners.map((runner) => runner.close()))
      expect([...counts.keys()].sort()).toEqual(expect.arrayContaining(['done', 'done again', 'rejected', 'sql_error']))
    },
  )
})

async function runStep(
  source: ReturnType<typeof createMemorySource>,
  model: DatabaseSync,
  runners: SqliteRunner[],
  random: Random,
  { started }: ReturnType<typeof watchProcesses>,
): Promise<string> {
  const below = (end: number) => Math.floor(random() * end)
  const pick = <T>(list: T[]): T => list[below(list.length)] as T
  const drawAny = () => Array.from({ length: 1 + below(4) }, () => pick(STATEMENTS)(below)).join(';\n')
  const draw = () => {
    // Most drawn scripts fail, because they name tables or rows that do not exist, or change nothing.
    const drawn = Array.from({ length: 30 }, drawAny).filter((script) => /INSERT|UPDATE/.test(script))
    const good = drawn.find((script) => problemOf(model, script, 'ROLLBACK') === undefined)
    return random() < 0.85 && good !== undefined ? good : drawAny()
  }
  const { signal } = new AbortController()
  const [sql, kind] = [draw(), pick(KINDS)]
  const [runner, other] = random() < 0.5 ? runners : runners.toReversed()
  let [hasStored, hadConflict] = [false, false]
  const storeAndNote: Store = async (...args) => {
    const stored = await source.store(...args)
    hasStored = stored === 'stored'
    hadConflict ||= stored === 'conflict'
    // A script without changes may have seen the state before the script that overtook it.
    const isApplied = hasStored && args[0].numbers.length > 0
    if (isApplied) expect({ sql, problem: problemOf(model, sql) }).toEqual({ sql, problem: undefined })
    return stored
  }
  let wasOvertaken = false
  const store: Store = async (...args) => {
    if (kind === 'failing') throw new Error('not stored')
    if (kind === 'overtaken' && !wasOvertaken) {
      wasOvertaken = true
      const faster = draw()
      const ran = await other?.execute(source, { sql: faster }, source.store, {}, signal)
      expect({ faster, problem: problemOf(model, faster) }).toEqual({ faster, problem: messageOf(ran) })
    }
    const stored = await storeAndNote(...args)
    if (kind === 'lost') throw new Error('the answer was lost')
    return stored
  }
  const kill = () => started.forEach((child) => void child.kill('SIGKILL'))
  const timer = kind === 'killed' ? setTimeout(kill, random() * 8) : undefined
  try {
    const ran = await runner?.execute(source, { sql }, store, {}, signal)
    if (ran?.outcome === 'done') expect(hasStored).toBe(true)
    if (ran?.outcome === 'sql_error')
      expect({ sql, problem: problemOf(model, sql) }).toEqual({ sql, problem: ran.message })
    return `${ran?.outcome}${hadConflict ? ' again' : ''}`
  } catch (error) {
    if (error instanceof Error && /not stored|was lost|database process/.test(error.message)) return 'rejected'
    throw error
  } finally {
    clearTimeout(timer)
  }
}

const messageOf = (ran?: Ran<unknown>): string | undefined => (ran && 'message' in ran ? ran.message : undefined)

/** Runs a script as one transaction, and returns the message of its error. */
function problemOf(model: DatabaseSync, sql: string, end = 'COMMIT'): string | undefined {
  try {
    model.exec(`BEGIN;${sql};${end}`)
    return undefined
  } catch (error) {
    if (model.isTransaction) model.exec('ROLLBACK')
    return error instanceof Error ? error.message : String(error)
  }
}
