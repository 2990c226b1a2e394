import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'
import { ConfigError } from '../../../platform/config-error.ts'
import { applyMigrations, readMigrations, runScript } from '../../../platform/postgres/migrate.ts'
import { compareFunctions, explainChanges, toMigration } from '../../../platform/postgres/sql-functions.ts'
import { unavailability } from '../../../platform/unavailable.ts'
import { diffMigration, EMPTY_MIGRATION } from '../../../scripts/diff-migration.ts'
import { cloneDatabase, createEmptyDatabase, type TestDatabase } from '../../support/database.ts'
import { startProxy } from '../../support/proxy.ts'

/** UUID without its last digit. */
const UUID = '00000000-0000-0000-0000-00000000000'

async function withPool(connectionString: string, work: (pool: pg.Pool) => Promise<void>): Promise<void> {
  const pool = new pg.Pool({ connectionString })
  // Its last connection may still be closing when the database is dropped.
  pool.on('error', () => {})
  try {
    await work(pool)
  } finally {
    await pool.end()
  }
}

let database: TestDatabase
beforeEach(async () => {
  database = await createEmptyDatabase()
})
afterEach(() => database.drop())

describe('the migrations', () => {
  it('make the database that prisma/schema.prisma describes', async () => {
    expect(await diffMigration(database.url)).toBe(EMPTY_MIGRATION)
  })

  it('are applied once by processes that start at the same time', async () => {
    const applied = await Promise.all([1, 2, 3].map(() => applyMigrations(database.url)))
    const names = (await readdir('prisma/migrations')).filter((name) => /^\d/.test(name))
    expect(applied.flat().sort()).toEqual(names.sort())
    expect(await applyMigrations(database.url)).toEqual([])
  })

  it('are applied after a process that died in the middle of one', async () => {
    await withPool(database.url, async (pool) => {
      // The table as the migration engine creates it, with a migration that it has begun.
      await pool.query(`
        CREATE TABLE _prisma_migrations (
          id varchar(36) PRIMARY KEY, checksum varchar(64) NOT NULL, finished_at timestamptz,
          migration_name varchar(255) NOT NULL, logs text, rolled_back_at timestamptz,
          started_at timestamptz NOT NULL DEFAULT now(), applied_steps_count integer NOT NULL DEFAULT 0
        );
        INSERT INTO _prisma_migrations (id, checksum, migration_name) VALUES ('1', 'x', '20261121000000_init')`)
      expect(await applyMigrations(database.url)).toContain('20261121000000_init')
      const { rows } = await pool.query('SELECT FROM _prisma_migrations WHERE finished_at IS NULL')
      expect(rows).toEqual([])
    })
  })

  // The first chunks are queries about the notes, the later ones the scripts.
  it.each([2, 7, 10, 12, 16, 25])('can be repeated when Postgres is lost at the chunk %i', async (nth) => {
    const url = new URL(database.url)
    const proxy = await startProxy(url.host)
    url.host = proxy.address
    let hasBroken = false
    proxy.interfere(nth, ({ hangUp }) => {
      hasBroken = true
      hangUp()
      return false
    })
    expect(unavailability(await applyMigrations(url.href).catch((error: unknown) => error))).toBe('away')
    await applyMigrations(url.href)
    await proxy.close()
    expect(hasBroken).toBe(true)
    expect(await applyMigrations(database.url)).toEqual([])
  })

  it('are not applied beside the tables of another program', async () => {
    await withPool(database.url, async (pool) => {
      await pool.query('CREATE TABLE others (id integer)')
      await expect(applyMigrations(database.url)).rejects.toThrow('DATABASE_URL: must name an empty database')
      const { rows } = await pool.query("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
      expect(rows).toEqual([{ relname: 'others' }])
    })
  })

  it('are not applied without a word if they cannot be rolled back', async () => {
    const first = { name: '1_first', script: 'CREATE TABLE notes (id integer, text text)' }
    const script = '-- No way back: the release before reads notes.text.\nALTER TABLE notes DROP COLUMN text'
    const from = [first, { name: '2_final', script }]
    await applyMigrations(database.url, { from: [first] })
    const refused = applyMigrations(database.url, { from })
    await expect(refused).rejects.toThrow(ConfigError)
    await expect(refused).rejects.toThrow('2_final: the release before reads notes.text.')
    expect(await applyMigrations(database.url, { from, noWayBack: true })).toEqual(['2_final'])
    await database.drop()
    database = await createEmptyDatabase()
    expect(await applyMigrations(database.url, { from })).toEqual(['1_first', '2_final'])
  })

  it('tell why one fails', async () => {
    await applyMigrations(database.url)
    await withPool(database.url, async (pool) => {
      await pool.query("DELETE FROM _prisma_migrations WHERE migration_name LIKE '%_invitations'")
    })
    await expect(applyMigrations(database.url)).rejects.toThrow('relation "invitations" already exists')
  })

  it('count the sessions that are there already', async () => {
    await withPool(database.url, async (pool) => {
      const names = (await readMigrations()).map(({ name }) => name)
      const last = names.findIndex((name) => name.endsWith('agents_and_sessions'))
      await applyMigrations(database.url, { from: (await readMigrations()).slice(0, last) })
      await pool.query(`
        INSERT INTO agents (id, organization_id, name, system_prompt, updated_at)
        VALUES ('${UUID}8', '${UUID}1', 'Agent', 'Help.', now());
        INSERT INTO sessions (id, organization_id, agent_id, harness_id, created_at, updated_at)
        SELECT gen_random_uuid(), '${UUID}1', CASE WHEN n % 3 = 0 THEN '${UUID}8'::uuid END, '${UUID}2', now() - n * interval '1 h', now()
        FROM generate_series(1, 60) n`)
      await applyMigrations(database.url, { noWayBack: true })
      const { rows } = await pool.query(`
        SELECT agent_id, seconds, sum(count)::int AS count FROM session_counts GROUP BY 1, 2 ORDER BY 1, 2`)
      expect(rows).toEqual([
        { agent_id: `${UUID}0`, seconds: 300, count: 60 },
        { agent_id: `${UUID}0`, seconds: 86400, count: 60 },
        { agent_id: `${UUID}8`, seconds: 300, count: 20 },
        { agent_id: `${UUID}8`, seconds: 86400, count: 20 },
      ])
    })
  })

  it('make what earlier releases have written searchable', async () => {
    const migrations = await readMigrations()
    const last = migrations.findIndex(({ name }) => name.endsWith('_runs'))
    await applyMigrations(database.url, { from: migrations.slice(0, last) })
    await withPool(database.url, async (pool) => {
      await pool.query(`
        INSERT INTO sessions (id, organization_id, harness_id, title, updated_at)
        SELECT gen_random_uuid(), '${UUID}1', '${UUID}2', CASE WHEN n % 2 = 0 THEN 'A title' END, now()
        FROM generate_series(1, 250) n;
        INSERT INTO events (session_id, sequence, type, ts, turn_id, data)
        SELECT id, 1, 'input.message', now(), id, '{"message": {"content": [{"type": "text", "text": "A question"}]}}'
        FROM sessions`)
      await applyMigrations(database.url)
      const search = `SELECT count(*)::int AS count FROM session_texts WHERE words @@ $1::tsquery`
      const count = async (query: string) => (await pool.query(search, [query])).rows[0].count
      const counts = [await count('title'), await count('question'), await count(`'input ${UUID}1' & question`)]
      expect(counts).toEqual([125, 250, 250])
      // A process may die after any of its statements.
      await pool.query("DELETE FROM _prisma_migrations WHERE migration_name LIKE '%_runs_indexes'")
      expect(await applyMigrations(database.url)).toEqual([expect.stringMatching('_runs_indexes')])
    })
  })

  it('let statements on a busy table through, and run after them', async () => {
    await withPool(database.url, async (pool) => {
      await pool.query('CREATE TABLE busy (id int)')
      const other = await pool.connect()
      await other.query('BEGIN; LOCK TABLE busy IN ROW EXCLUSIVE MODE')
      const migrating = runScript(pool, 'ALTER TABLE busy ADD COLUMN more int; CREATE TABLE once (id int)', 100)
      // The insert waits behind the migration's lock request, and would for as long as the migration waits for its
      // lock.
      await pool.query('INSERT INTO busy VALUES (1)')
      await other.query('COMMIT')
      other.release()
      await migrating
      expect((await pool.query('SELECT id, more FROM busy')).rows).toEqual([{ id: 1, more: null }])
    })
  })
})

describe('prisma/functions', () => {
  let migrated: TestDatabase
  beforeEach(async () => {
    migrated = await cloneDatabase()
  })
  afterEach(() => migrated.drop())

  it('has exactly the functions and triggers that the migrations create', async () => {
    expect(explainChanges(await compareFunctions(migrated.url))).toEqual([])
  })

  it('has a file for each function, with its manual first', async () => {
    for (const file of await readdir('prisma/functions')) {
      const text = await readFile(`prisma/functions/${file}`, 'utf8')
      const manual = /^(-- .+\n(--.*\n)*)\nCREATE OR REPLACE FUNCTION (\w+)\(/.exec(text)
      expect([file, manual?.[3]]).toEqual([file, file.replace('.sql', '')])
    }
  })

  it('is compared with the database both ways, and a migration reconciles them', async () => {
    await withPool(migrated.url, async (pool) => {
      await pool.query(`
        DROP FUNCTION pending_calls;
        DROP TRIGGER sessions_deleted_note ON sessions;
        CREATE TRIGGER stray AFTER DELETE ON sessions FOR EACH STATEMENT EXECUTE FUNCTION count_sessions();
        CREATE FUNCTION stray(integer) RETURNS integer LANGUAGE sql AS 'SELECT $1';
        CREATE OR REPLACE FUNCTION next_queued_turn(p_session_id uuid) RETURNS uuid LANGUAGE sql STABLE AS 'SELECT NULL::uuid'`)
      const changes = await compareFunctions(migrated.url)
      expect(explainChanges(changes).sort()).toEqual([
        'No migration makes pending_calls() of prisma/functions/pending_calls.sql: write one with npm run migration -- <name>.',
        'The migrations make ROUTINE stray(integer), which is not in prisma/functions/stray.sql: write it there, or drop it with npm run migration -- <name>.',
        'The migrations make TRIGGER stray ON sessions, which is not in prisma/functions/count_sessions.sql: write it there, or drop it with npm run migration -- <name>.',
        'prisma/functions/next_queued_turn.sql is not what the migrations make: write one with npm run migration -- <name>.',
        'prisma/functions/note_deleted_sessions.sql is not what the migrations make: write one with npm run migration -- <name>.',
      ])
      await pool.query(toMigration(changes))
      expect(explainChanges(await compareFunctions(migrated.url))).toEqual([])
    })
  })
})
