import type { EventType } from '../../contract/events.ts'

/** Which events a reader wants; undefined: all. */
export type EventFilter = { types?: EventType[] | undefined; exclude?: EventType[] | undefined }

export const wants = (filter: EventFilter, type: string): boolean =>
  (filter.types === undefined || filter.types.includes(type as EventType)) &&
  !(filter.exclude?.includes(type as EventType) ?? false)
