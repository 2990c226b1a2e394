import { v7 } from 'uuid'

export type IdPrefix =
  | 'org'
  | 'agent'
  | 'session'
  | 'message'
  | 'turn'
  | 'event'
  | 'exec'
  | 'model'
  | 'provider'
  | 'harness'

export const newUuid = (): string => v7()

/** `session` and a uuid give `session_<32 hex>`. */
export const toId = (prefix: IdPrefix, uuid: string): string => `${prefix}_${uuid.replaceAll('-', '')}`

/** For those who write ids and import no values of the domain. */
export type ToId = typeof toId

/** The uuid of a prefixed id that the contract has checked already. */
export function toUuid(id: string): string {
  const hex = id.slice(id.indexOf('_') + 1)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** The harness of a session that names none; it is an opaque label, there is no harness resource. */
export const DEFAULT_HARNESS_ID = 'harness_01933b5a000070008000000000000601'
export const DEFAULT_ORGANIZATION_UUID = '00000000-0000-0000-0000-000000000001'
export const ANONYMOUS_USER_UUID = '00000000-0000-0000-0000-000000000001'
