import type { Config } from '../config.ts'
import type { PostgresSettings } from './connection.ts'

/** Returns how migrations reach the database. */
export function migrationSettings(
  config: PostgresSettings & Pick<Config, 'DATABASE_MIGRATION_URL'>,
): PostgresSettings & { variable: string } {
  const { DATABASE_URL, DATABASE_MIGRATION_URL: url, DATABASE_CA_FILE } = config
  return url === undefined
    ? { DATABASE_URL, DATABASE_CA_FILE, variable: 'DATABASE_URL' }
    : { DATABASE_URL: url, DATABASE_CA_FILE, variable: 'DATABASE_MIGRATION_URL' }
}
