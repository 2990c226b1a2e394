import { ORGANIZATION_SECRETS } from '../../domain/kit/organization-secrets/column.ts'
import type { EncryptedColumn } from '../../domain/kit/secrets.ts'
import { PROVIDER_KEYS } from '../../domain/models/llm-providers/stored-key.ts'
import { WEBHOOK_SECRETS } from '../../domain/organization-events/webhooks/secrets.ts'
import { SCHEDULE_HEADERS } from '../../domain/schedules/targets/headers.ts'
import { SESSION_SECRETS } from '../../domain/session-data/storage/secret-column.ts'
import { CALL_SECRETS } from '../../domain/tools/call-secrets/column.ts'
import { MCP_CREDENTIALS } from '../../domain/tools/mcp-servers/credentials.ts'
import { MCP_PENDING, MCP_TOKENS } from '../../domain/tools/mcp-servers/grants/grant.ts'
import { TASK_QUEUE_KEYS } from '../../domain/tools/task-queues/key.ts'
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
  WEBHOOK_SECRETS,
  TASK_QUEUE_KEYS,
  ORGANIZATION_SECRETS,
  MCP_TOKENS,
  MCP_PENDING,
]

/**
 * SQL of a secret's version and key id: `substring("<column>" FROM 1 FOR 9)`, which an index must contain literally.
 */
export const headerSql = ({ column }: EncryptedColumn): string => `substring("${column}" FROM 1 FOR ${HEADER_BYTES})`
