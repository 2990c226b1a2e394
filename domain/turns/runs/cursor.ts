import { invalid } from '../../kit/errors.ts'

export type RunOrder = 'newest' | 'longest'

/** Place of a turn in a list: the time by which the list is ordered, and its id. */
export type RunPlace = { at: Date; id: string }

const CURSOR = /^(newest|longest)\.(\d{1,15})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** Returns the cursor to continue after a place. It has all that is needed, so its turn may be gone by then. */
export const toCursor = (order: RunOrder, { at, id }: RunPlace): string =>
  Buffer.from(`${order}.${at.getTime()}.${id}`).toString('base64url')

/** Throws `invalid` for text that no list of this order has given. */
export function fromCursor(order: RunOrder, cursor: string): RunPlace {
  const [, ofOrder, ms, id] = CURSOR.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (ms === undefined || id === undefined) throw invalid('after: must be the next of an earlier page')
  if (ofOrder !== order) throw invalid(`after: must be the next of a page with order=${order}`)
  return { at: new Date(Number(ms)), id }
}
