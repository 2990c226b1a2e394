import pg from 'pg'

/** A database of its own for each test file, cloned from the migrated template. */
export async function cloneDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const template = process.env.TEST_TEMPLATE_DATABASE_URL
  if (template === undefined) throw new Error('Run the tests with npm test: it brings up what they need.')
  const name = `test_${process.pid}_${Date.now()}_${Math.random().toString(36).slice(2, 8)}`
  const url = new URL(template)
  const templateName = url.pathname.slice(1)
  url.pathname = '/postgres'
  const admin = url.toString()
  await execute(admin, `CREATE DATABASE ${name} TEMPLATE ${templateName}`)
  url.pathname = `/${name}`
  return { url: url.toString(), drop: () => execute(admin, `DROP DATABASE ${name} WITH (FORCE)`) }
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
