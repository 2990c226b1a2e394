import type { EncryptedColumn } from '../../kit/secrets.ts'

/** Column of sessions' secrets. */
export const SESSION_SECRETS: EncryptedColumn = {
  table: 'session_secrets',
  keys: ['session_id', 'name'],
  column: 'value',
}
