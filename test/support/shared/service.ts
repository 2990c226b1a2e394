import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Json } from '../http.ts'
import type { LabRun } from '../lab.ts'

/**
 * Flavour of a shared service. `open` has no sign-in. `full` runs in mode `full` with an administrator. Both have a
 * worker and the lab's tools.
 */
export type Flavour = 'open' | 'full'

/** Addresses of a shared service. `lab` serves the runs of the lab's tools. */
export type Addresses = { url: string; lab: string; database: string }

/**
 * Returns the service of a flavour that all test files of the run share. Each test works in its own organization there.
 */
export async function sharedService(flavour: Flavour): Promise<Addresses> {
  const broker = process.env.TEST_SERVICES_URL
  if (broker === undefined) throw new Error('Run the tests with npm test: it brings up what they need.')
  const answer = await fetch(`${broker}/${flavour}`)
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(text)
  return JSON.parse(text)
}

/** Organization for one test in the shared service without sign-in. It can be used wherever a `Target` is expected. */
export type Organization = {
  id: string
  uuid: string
  url: string
  headers: Record<string, string>
  /** Returns the lab tool runs in this organization, oldest first. */
  labRuns(): Promise<LabRun[]>
  /** Queries the shared service's database. Only this organization's rows may be read or changed. */
  query(sql: string, values?: unknown[]): Promise<Json[]>
}

/** Inserts an organization owned by the user as whom all requests run when there is no sign-in. */
const INSERT_ORGANIZATION = `
  WITH organization AS (INSERT INTO organizations (id, name, updated_at) VALUES ($1, 'Of a test', now()) RETURNING id)
  INSERT INTO members (organization_id, user_id, role)
  SELECT id, '00000000-0000-0000-0000-000000000001', 'owner' FROM organization`

export async function newOrganization(): Promise<Organization> {
  const { url, lab, database } = await sharedService('open')
  const uuid = randomUUID()
  const id = `org_${uuid.replaceAll('-', '')}`
  // Inserted directly, because over HTTP a user may own no more than a hundred.
  await query(database, INSERT_ORGANIZATION, [uuid])
  return {
    id,
    uuid,
    url,
    headers: { 'X-Org-Id': id },
    labRuns: async () => JSON.parse(await (await fetch(`${lab}/${uuid}`)).text()),
    query: (sql, values) => query(database, sql, values),
  }
}

/** Returns the number of the organization's rows in a table. */
export async function countRows(api: Organization, table: 'agents' | 'sessions' | 'turns'): Promise<number> {
  const [row] = await api.query(`SELECT count(*)::int AS rows FROM ${table} WHERE organization_id = $1`, [api.uuid])
  return row.rows
}

/** Pools of the shared services' databases. A new connection for each query would cost more than the query. */
const pools = new Map<string, pg.Pool>()

function poolOf(database: string): pg.Pool {
  const known = pools.get(database)
  if (known !== undefined) return known
  const pool = new pg.Pool({ connectionString: database, max: 2, idleTimeoutMillis: 1000, allowExitOnIdle: true })
  // A test may drop its own database while a connection is idle; the next query reports what is wrong.
  pool.on('error', () => {})
  pools.set(database, pool)
  return pool
}

/** Runs a query and returns the rows as Postgres has them. */
export const query = async (database: string, sql: string, values: unknown[] = []): Promise<Json[]> =>
  (await poolOf(database).query(sql, values)).rows
