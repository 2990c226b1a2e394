import type { EncryptedColumn } from '../secrets.ts'

/** Column of the values of organizations' secrets. */
export const ORGANIZATION_SECRETS: EncryptedColumn = {
  table: 'organization_secrets',
  keys: ['organization_id', 'name'],
  column: 'value',
}
