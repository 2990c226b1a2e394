import type { SecretPlace } from '../domain/secrets.ts'
import { HEADER_BYTES } from './secrets.ts'

/** Column of stored secrets. `keys` is its table's primary key, in the order in which places name it. */
export type EncryptedColumn = { table: string; keys: readonly string[]; column: string }

/**
 * All columns of stored secrets, for the check at the start and for the command that re-encrypts. A table that may
 * become large needs an index on `headerSql`.
 */
export const encryptedColumns: readonly EncryptedColumn[] = [
  { table: 'llm_providers', keys: ['organization_id', 'id'], column: 'api_key' },
]

/** Returns the place of a row's secret. At most one of the keys may contain a slash, or places are ambiguous. */
export const placeOf = ({ table, column }: EncryptedColumn, keys: readonly string[]): SecretPlace =>
  [table, ...keys, column].join('/')

/** SQL of a secret's version and key id: `substring("<column>" FROM 1 FOR 9)`, which an index has to contain literally. */
export const headerSql = ({ column }: EncryptedColumn): string => `substring("${column}" FROM 1 FOR ${HEADER_BYTES})`
