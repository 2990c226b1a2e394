import type { KeyValueInfo, SecretInfo } from '../../../contract/storage.ts'

export type ValueRow = { key: string; value: string; createdAt: Date; updatedAt: Date }
/** Row of a secret without its value, which lists do not read. */
export type SecretRow = { name: string; createdAt: Date; updatedAt: Date }

export const presentValue = ({ key, value, createdAt, updatedAt }: ValueRow): KeyValueInfo => ({
  key,
  value,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
})

export const presentSecret = ({ name, createdAt, updatedAt }: SecretRow): SecretInfo => ({
  name,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
})
