import { type EventType, eventTypes } from '../../../contract/events.ts'

/** Filter for a reader's events; undefined fields match all. `turnId` is a uuid. */
export type EventFilter = {
  types?: readonly EventType[] | undefined
  exclude?: readonly EventType[] | undefined
  turnId?: string
}

/** Returns the wanted types, limited to the ones that clients know: a newer process may have recorded others. */
export const wantedTypes = ({ types = eventTypes, exclude = [] }: EventFilter): EventType[] =>
  types.filter((type) => !exclude.includes(type))

/** Types of a filter for all events, shared by many streams. */
const ALL = new Set<string>(eventTypes)

/** Returns a predicate for live entries that matches the filter's conditions in SQL. */
export function createEventMatcher(filter: EventFilter): (event: { type: string; turnId: string }) => boolean {
  const types = filter.types || filter.exclude ? new Set<string>(wantedTypes(filter)) : ALL
  return ({ type, turnId }) => types.has(type) && (filter.turnId === undefined || turnId === filter.turnId)
}
