import type { Uuid } from '../../contract/kit/ids.ts'
import { asUuid } from '../../domain/kit/ids.ts'

/** Returns the UUID of an id from an answer, for tests that read the database or call the domain. */
export const toUuid = <Kind extends string>(id: string): Uuid<Kind> =>
  asUuid(id.slice(id.indexOf('_') + 1).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'))
