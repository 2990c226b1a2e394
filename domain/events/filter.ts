import { type EventType, eventTypes } from '../../contract/events.ts'

/** Which events a reader wants; what is undefined leaves out none. `turnId` is a uuid. */
export type EventFilter = {
  types?: readonly EventType[] | undefined
  exclude?: readonly EventType[] | undefined
  turnId?: string
}

/** Never one that clients do not know: a newer process may have recorded it. */
export const wantedTypes = ({ types = eventTypes, exclude = [] }: EventFilter): EventType[] =>
  types.filter((type) => !exclude.includes(type))

/** Most streams want all, and share this. */
const ALL = new Set<string>(eventTypes)

/** Tells of an entry of the relay what the record is asked for in SQL. */
export function createEventMatcher(filter: EventFilter): (event: { type: string; turnId: string }) => boolean {
  const types = filter.types || filter.exclude ? new Set<string>(wantedTypes(filter)) : ALL
  return ({ type, turnId }) => types.has(type) && (filter.turnId === undefined || turnId === filter.turnId)
}
