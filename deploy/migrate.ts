/**
 * npm run migrate: applies the migrations that the database lacks, and ends. Connects to DATABASE_MIGRATION_URL, or else
 * DATABASE_URL. May run beside the service, and several times at once. Exit code 1 when a migration is not applied. With
 * --no-way-back it applies also what cannot be rolled back.
 */
import { ConfigError, readConfig } from '../platform/config.ts'
import { applyMigrations } from '../platform/postgres/migrate.ts'
import { migrationSettings } from '../platform/postgres/migration-settings.ts'
import { toConfigError } from '../platform/postgres/start-failure.ts'

async function main(): Promise<void> {
  const settings = migrationSettings(readConfig({ ...process.env, MIGRATE_ON_START: 'false' }))
  const applied = await applyMigrations(settings, { noWayBack: process.argv.includes('--no-way-back') }).catch(
    (error: unknown) => {
      throw toConfigError(error, settings.variable) ?? error
    },
  )
  for (const name of applied) process.stdout.write(`Applied ${name}.\n`)
  process.stdout.write(applied.length === 0 ? 'The database has all migrations.\n' : `Applied: ${applied.length}.\n`)
}

await main().catch((error: unknown) => {
  if (error instanceof ConfigError) process.stderr.write('The command cannot run with this environment:\n')
  process.stderr.write(`${error instanceof Error ? error.message || String(error) : String(error)}\n`)
  process.exitCode = 1
})
