/**
 * npm run migration -- <name>: writes prisma/migrations/<time>_<name>, which brings the newest migration to
 * prisma/schema.prisma and prisma/functions. Runs a Postgres of its own, to see what the migrations create.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ROOT } from '../dev/development.ts'
import { freePorts } from '../dev/services/index.ts'
import { createTemplateDatabase, startPostgres } from '../dev/services/postgres.ts'
import { print, printError } from '../dev/terminal.ts'
import { applyMigrations } from '../platform/postgres/migrate.ts'
import { compareFunctions, toMigration } from '../platform/postgres/sql-functions.ts'
import { diffMigration, EMPTY_MIGRATION } from './diff-migration.ts'

async function writeMigration(name: string, serverUrl: string): Promise<void> {
  const tables = await diffMigration(await createTemplateDatabase(serverUrl, 'empty'))
  const migratedUrl = await createTemplateDatabase(serverUrl, 'migrated')
  await applyMigrations(migratedUrl)
  const functions = toMigration(await compareFunctions(migratedUrl))
  const sql = [tables === EMPTY_MIGRATION ? '' : tables, functions].filter((part) => part !== '').join('\n')
  if (sql === '')
    return print('prisma/schema.prisma and prisma/functions are what the migrations make: nothing written.')
  const time = new Date().toISOString().replace(/\D/g, '').slice(0, 14)
  const folder = path.join('prisma', 'migrations', `${time}_${name}`)
  await mkdir(path.join(ROOT, folder))
  await writeFile(path.join(ROOT, folder, 'migration.sql'), sql)
  print(`${folder}/migration.sql: read it, and add what neither file can say.`)
}

async function main(name: string): Promise<void> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'agent-sessions-migration-'))
  const [port = 0] = await freePorts(1)
  const postgres = await startPostgres({ dataDir, port, log: () => {}, durability: 'none' })
  try {
    await writeMigration(name, postgres.url)
  } finally {
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

const [name = ''] = process.argv.slice(2)
if (/^[a-z0-9_]+$/.test(name)) await main(name)
else {
  printError('Give the migration a name in snake_case: npm run migration -- sessions_with_files')
  process.exitCode = 1
}
