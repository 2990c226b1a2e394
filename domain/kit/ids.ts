import { v7 } from 'uuid'
import type { Uuid } from '../../contract/kit/ids.ts'

export { fromId, toId } from '../../contract/kit/ids.ts'

let cell: string | undefined

/** Sets the cell whose number ends the ids of this process, from 0 to 255. Undefined: they are random to the end. */
export function setCell(number: number | undefined): void {
  cell = number?.toString(16).padStart(2, '0')
}

/** Returns a UUID of version 7. Its last two digits are the cell's, so that a router can tell where an id belongs. */
export const newUuid = (): string => (cell === undefined ? v7() : v7().slice(0, -2) + cell)

/** Returns the lowest UUID of version 7 that is made at a time in ms. */
export const firstUuidOf = (ms: number): string =>
  ms
    .toString(16)
    .padStart(12, '0')
    .replace(/^(.{8})(.{4})$/, '$1-$2-7000-8000-000000000000')

/** Marks a UUID that was generated here, or reserved by an Idempotency-Key, as the id of a kind of resource. */
export const asUuid = <Kind extends string>(uuid: string): Uuid<Kind> => uuid as Uuid<Kind>

/** Harness of a session that does not name one. It is an opaque label: there is no harness resource. */
export const DEFAULT_HARNESS_UUID = '01933b5a-0000-7000-8000-000000000601'
export const DEFAULT_ORGANIZATION_UUID = '00000000-0000-0000-0000-000000000001'
export const ANONYMOUS_USER_UUID = '00000000-0000-0000-0000-000000000001'
