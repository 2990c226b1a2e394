import type { Config } from '../config.ts'
import type { PostgresSettings } from './connection.ts'

/** Returns how migrations reach the database, and the variable that holds the address. */
export function migrationSettings(config: PostgresSettings & Pick<Config, 'DATABASE_MIGRATION_URL'>): {
  settings: PostgresSettings
  variable: string
} {
  const { DATABASE_MIGRATION_URL: url, DATABASE_CA_FILE } = config
  return url === undefined
    ? { settings: config, variable: 'DATABASE_URL' }
    : { settings: { DATABASE_URL: url, DATABASE_CA_FILE }, variable: 'DATABASE_MIGRATION_URL' }
}
