import type { PointName } from './points.ts'

export const FAULT_KINDS = [
  'kill',
  'freeze',
  'cut-postgres',
  'cut-redis',
  'cut-temporal',
  'mute-postgres',
  'mute-redis',
  'mute-temporal',
  'redis-flushed',
  'redis-killed',
  'postgres-restarted',
  'temporal-restarted',
  'clock',
  'full-disk',
] as const

/**
 * Kind of a fault. `kill` and `freeze` happen to the process that comes to the point, `cut` to its connections, which are
 * closed and refused, and `mute` to its connections, which carry nothing any more. `clock` sets the process's clock wrong by
 * minutes. The others happen to the servers.
 */
export type FaultKind = (typeof FAULT_KINDS)[number]

/** Fault that happens when a process comes to a point for the nth time. */
export type PlannedFault = {
  kind: FaultKind
  point: PointName
  nth: number
  lastsMs: number
  /**
   * Second fault. One `at once` does not wait for its point, and happens to another process; one `in recovery` counts from
   * the moment of the first.
   */
  second?: PlannedFault & { when: 'at once' | 'in recovery' }
}
