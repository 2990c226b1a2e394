import type { ClockChange } from './clock-changes.ts'
import type { CronFields } from './fields.ts'
import { matches } from './matches.ts'

const MINUTE_MS = 60_000
/** Time for which past clock changes are kept, to make up for missed runs. */
const BACK_MS = 7 * 24 * 60 * MINUTE_MS
const MAX_INSTANTS = 100

/**
 * Returns a schedule's runs at times that clocks show twice. Temporal finds only some of them, depending on the zone.
 * Of many, returns the instants of the first change: such a schedule runs often, and each run compares it with
 * Temporal.
 */
export function findRepeated(fields: CronFields, changes: ClockChange[], now: Date): Date[] {
  const instants: Date[] = []
  for (const { at, before, after } of changes) {
    const shift = before - after
    if (shift < 0 || at < now.getTime() - BACK_MS) continue
    const first = instantsBetween(fields, at - shift, at, before)
    const second = fields.hours === null ? instantsBetween(fields, at, at + shift, after) : []
    const count = instants.length + first.length + second.length
    if (instants.length > 0 && count > MAX_INSTANTS) break
    instants.push(...first, ...second)
  }
  return instants
}

function instantsBetween(fields: CronFields, from: number, to: number, offset: number): Date[] {
  const instants: Date[] = []
  for (let minute = from; minute < to; minute += MINUTE_MS) {
    for (const second of fields.seconds) {
      const at = minute + second * 1000
      if (matches(fields, new Date(at + offset))) instants.push(new Date(at))
    }
  }
  return instants
}
