import pg from 'pg'

export type TestDatabase = { url: string; drop(): Promise<void> }

/** Creates a database for one test file by cloning the migrated template. */
export const cloneDatabase = (): Promise<TestDatabase> => createDatabase(templateUrl().pathname.slice(1))

/** Creates a database without tables. */
export const createEmptyDatabase = (): Promise<TestDatabase> => createDatabase('template0')

async function createDatabase(template: string): Promise<TestDatabase> {
  const name = `test_${process.pid}_${Date.now()}_${Math.random().toString(36).slice(2, 8)}`
  const url = templateUrl()
  url.pathname = '/postgres'
  const admin = url.toString()
  await execute(admin, `CREATE DATABASE ${name} TEMPLATE ${template}`)
  url.pathname = `/${name}`
  return { url: url.toString(), drop: () => execute(admin, `DROP DATABASE ${name} WITH (FORCE)`) }
}

function templateUrl(): URL {
  const template = process.env.TEST_TEMPLATE_DATABASE_URL
  if (template === undefined) throw new Error('Run the tests with npm test: it brings up what they need.')
  return new URL(template)
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
