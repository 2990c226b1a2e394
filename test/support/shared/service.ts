import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Json } from '../http.ts'
import type { LabRun } from '../lab.ts'

/** `open`: nobody signs in. `full`: mode full, with an administrator. Both have a worker and the lab's tools. */
export type Flavour = 'open' | 'full'

/** `lab` tells the runs of the lab's tools. */
export type Addresses = { url: string; lab: string; database: string }

/** The service of a flavour that all test files of the run share. What a test makes there is in its own organization. */
export async function sharedService(flavour: Flavour): Promise<Addresses> {
  const broker = process.env.TEST_SERVICES_URL
  if (broker === undefined) throw new Error('Run the tests with npm test: it brings up what they need.')
  const answer = await fetch(`${broker}/${flavour}`)
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(text)
  return JSON.parse(text)
}

/** An organization of a test's own in the shared service without sign-in; wherever a URL is taken, it can be given. */
export type Organization = {
  id: string
  uuid: string
  url: string
  headers: Record<string, string>
  /** The runs of lab tools in this organization, oldest first. */
  labRuns(): Promise<LabRun[]>
  /** Looks into, or changes, the database of the shared service: only rows of this organization. */
  query(sql: string, values?: unknown[]): Promise<Json[]>
}

/** Of the user that everybody is where nobody signs in. */
const INSERT_ORGANIZATION = `
  WITH organization AS (INSERT INTO organizations (id, name, updated_at) VALUES ($1, 'Of a test', now()) RETURNING id)
  INSERT INTO members (organization_id, user_id, role)
  SELECT id, '00000000-0000-0000-0000-000000000001', 'owner' FROM organization`

export async function newOrganization(): Promise<Organization> {
  const { url, lab, database } = await sharedService('open')
  const uuid = randomUUID()
  const id = `org_${uuid.replaceAll('-', '')}`
  // Not over HTTP: nobody may own more than a hundred.
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

/** How many rows of a table are the organization's. */
export async function countRows(api: Organization, table: 'agents' | 'sessions' | 'turns'): Promise<number> {
  const [row] = await api.query(`SELECT count(*)::int AS rows FROM ${table} WHERE organization_id = $1`, [api.uuid])
  return row.rows
}

/** Rows as Postgres has them. */
export async function query(database: string, sql: string, values: unknown[] = []): Promise<Json[]> {
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  try {
    return (await client.query(sql, values)).rows
  } finally {
    await client.end()
  }
}
