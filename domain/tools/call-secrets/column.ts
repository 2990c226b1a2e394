import type { EncryptedColumn } from '../../kit/secrets.ts'

/** Column of the secrets that the events of tool calls leave out. */
export const CALL_SECRETS: EncryptedColumn = {
  table: 'call_secrets',
  keys: ['session_id', 'turn_id', 'step', 'kind'],
  column: 'value',
}
