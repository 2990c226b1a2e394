import { CALL_SECRETS } from '../domain/call-secrets/column.ts'
import { PROVIDER_KEYS } from '../domain/llm-providers/stored-key.ts'
import { MCP_CREDENTIALS } from '../domain/mcp-servers/credentials.ts'
import { SCHEDULE_HEADERS } from '../domain/schedules/headers.ts'
import type { EncryptedColumn } from '../domain/secrets.ts'
import { SESSION_SECRETS } from '../domain/storage/secret-column.ts'
import { HEADER_BYTES } from './secrets.ts'

/**
 * All columns of stored secrets, for the check at the start and for the command that re-encrypts. A table that may
 * become large needs an index on `headerSql`.
 */
export const encryptedColumns: readonly EncryptedColumn[] = [
  PROVIDER_KEYS,
  MCP_CREDENTIALS,
  SESSION_SECRETS,
  CALL_SECRETS,
  SCHEDULE_HEADERS,
]

/** SQL of a secret's version and key id: `substring("<column>" FROM 1 FOR 9)`, which an index has to contain literally. */
export const headerSql = ({ column }: EncryptedColumn): string => `substring("${column}" FROM 1 FOR ${HEADER_BYTES})`
