import type { EncryptedColumn } from '../../kit/secrets.ts'

/** Column of the secrets that events of tool calls omit. */
export const CALL_SECRETS: EncryptedColumn = {
  table: 'call_secrets',
  keys: ['session_id', 'turn_id', 'step', 'kind'],
  column: 'value',
}
