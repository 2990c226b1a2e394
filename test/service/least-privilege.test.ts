import { readFileSync } from 'node:fs'
import pg from 'pg'
import { ConfigError } from '../../platform/config.ts'
import { cloneDatabase, createEmptyDatabase, type TestDatabase } from '../support/database.ts'
import { createSession } from '../support/http.ts'
import { runToEnd } from '../support/process.ts'
import { startService, withService } from '../support/service.ts'
import { post } from '../support/turns.ts'

const ROLE = `role_${process.pid}`
const page = readFileSync('docs/operations.md', 'utf8')
const GRANTS = (/```sql\n(GRANT USAGE [^`]+)```/.exec(page)?.[1] ?? '').replaceAll('TO service', `TO ${ROLE}`)

async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(sql)
  await client.end()
}

const databases: TestDatabase[] = []
/** Makes a database in which an administrator has executed the SQL. */
async function make(create: () => Promise<TestDatabase>, sql: string): Promise<string> {
  const database = await create()
  databases.push(database)
  await execute(database.url, sql)
  return database.url
}

/** Changes the login, or the database, in an address. */
function changed(url: string, parts: Partial<URL>): string {
  return Object.assign(new URL(url), parts).href
}
const asRole = (url: string) => changed(url, { username: ROLE, password: 'few' })

let empty: string
beforeAll(async () => {
  empty = await make(createEmptyDatabase, `CREATE ROLE ${ROLE} LOGIN PASSWORD 'few'`)
})
afterAll(async () => {
  for (const { drop } of databases.slice(1)) await drop()
  await execute(empty, `DROP ROLE ${ROLE}`)
  await databases[0]?.drop()
})

const startFailure = async (DATABASE_URL: string, MIGRATE_ON_START = 'false') => {
  const error = await startService({ environment: { DATABASE_URL, MIGRATE_ON_START }, worker: false }).then(
    ({ stop }) => stop(),
    (failure: unknown) => failure,
  )
  expect(error).toBeInstanceOf(ConfigError)
  return (error as ConfigError).message
}

const LACKS = 'DATABASE_URL: the role lacks rights, see docs/operations.md: permission denied for '

describe('a database that the owner migrates by the command', () => {
  it('is served by a role with the rights of docs/operations.md', async () => {
    const owned = await make(createEmptyDatabase, GRANTS)
    const environment = { DATABASE_URL: asRole(owned), MIGRATE_ON_START: 'false' }
    const first = await runToEnd('deploy/migrate.ts', { ...environment, DATABASE_MIGRATION_URL: owned })
    expect(first).toEqual({ code: 0, output: expect.stringMatching(/^Applied \d+_init\.\n[\s\S]*\nApplied: \d+\.\n$/) })
    const second = await runToEnd('deploy/migrate.ts', { DATABASE_URL: owned })
    expect(second).toEqual({ code: 0, output: 'The database has all migrations.\n' })
    await withService({ environment }, async ({ url }) => {
      const id = await createSession(url)
      expect((await post(url, id, 'Hello', {}, '?wait=60')).body).toMatchObject({ turn: { status: 'completed' } })
    })
    await execute(owned, `DROP OWNED BY ${ROLE}`)
  })

  it('is not served before, and says so', async () => {
    expect(await startFailure(asRole(empty))).toMatch(
      /^DATABASE_URL: \d+ migrations are not applied \(\d+_init\): run npm run migrate, in a container node deploy\/migrate.ts, /,
    )
    expect(await startFailure(asRole(empty), 'true')).toBe(`${LACKS}schema public`)
  })

  it('is not served when it lacks the last migration', async () => {
    const older = await make(
      cloneDatabase,
      'DELETE FROM _prisma_migrations WHERE migration_name = (SELECT max(migration_name) FROM _prisma_migrations)',
    )
    expect(await startFailure(older)).toMatch(
      /^DATABASE_URL: a migration is not applied \(\d+_\w+\): run npm run migrate/,
    )
  })
})

describe('a role', () => {
  it('without rights gets a sentence, from the command as well', async () => {
    const url = asRole(await make(cloneDatabase, ''))
    expect(await startFailure(url)).toBe(`${LACKS}table _prisma_migrations`)
    expect(await runToEnd('deploy/migrate.ts', { DATABASE_URL: url })).toEqual({
      code: 1,
      output: `The command cannot run with this environment:\n${LACKS}table _prisma_migrations\n`,
    })
  })

  it('that lacks some rights is told which', async () => {
    const url = await make(cloneDatabase, `${GRANTS}; REVOKE DELETE, UPDATE ON events FROM ${ROLE}`)
    expect(await startFailure(asRole(url))).toBe(
      `DATABASE_URL: the role ${ROLE} lacks rights: DELETE on events, UPDATE on events. docs/operations.md has the GRANTs.`,
    )
  })

  it('that does not exist, or without its database, gets a sentence', async () => {
    expect(await startFailure(changed(asRole(empty), { username: 'nobody_here' }))).toBe(
      'DATABASE_URL: the server refuses the login: role "nobody_here" does not exist',
    )
    expect(await startFailure(changed(empty, { pathname: '/nowhere' }))).toBe(
      'DATABASE_URL: database "nowhere" does not exist',
    )
  })
})
