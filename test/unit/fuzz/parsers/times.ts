import assert from 'node:assert/strict'
import { Cron } from 'croner'
import fc from 'fast-check'
import { createEventIds } from '../../../../domain/events/log/event-id.ts'
import { DomainError } from '../../../../domain/kit/errors.ts'
import { readRetryAfter } from '../../../../domain/models/llm/providers/call-failure.ts'
import { backOffMs, retryAfterMs } from '../../../../domain/organization-events/webhooks/back-off.ts'
import { fieldsOf, timetableOf } from '../../../../domain/schedules/cron/calendars.ts'
import { checkTimezone } from '../../../../domain/schedules/cron/check-timezone.ts'
import type { CronFields } from '../../../../domain/schedules/cron/fields.ts'
import { matchesDay } from '../../../../domain/schedules/cron/matches.ts'
import { parseCron } from '../../../../domain/schedules/cron/parse.ts'
import { StatusError } from '../../../../domain/tools/mcp/protocol/status-error.ts'
import { longPause, retryDelayMs } from '../../../../domain/turns/run/retry-delay.ts'
import { type Parser, refusal } from '../parser.ts'

const DAY_MS = 86_400_000
const YEARS = 80
const ZONES = ['UTC', 'Europe/Berlin', 'America/Santiago', 'Australia/Lord_Howe', 'Africa/Casablanca']

/** Returns the first run in UTC after an instant. */
function firstRun(fields: CronFields, after: Date): Date | null {
  const hours = fields.hours ?? Array.from({ length: 24 }, (_, hour) => hour)
  const today = Math.floor(after.getTime() / DAY_MS) * DAY_MS
  for (let day = today; day < today + YEARS * 366 * DAY_MS; day += DAY_MS) {
    if (!matchesDay(fields, new Date(day))) continue
    for (const hour of hours)
      for (const minute of fields.minutes)
        for (const second of fields.seconds) {
          const at = day + ((hour * 60 + minute) * 60 + second) * 1000
          if (at > after.getTime()) return new Date(at)
        }
  }
  return null
}

const item = (max: number, min = 0) =>
  fc
    .tuple(fc.integer({ min, max }), fc.integer({ min, max }), fc.nat(4), fc.integer({ min: 1, max: 20 }))
    .map(
      ([one, other, kind, step]) =>
        ['*', `${one}`, `${Math.min(one, other)}-${Math.max(one, other)}`, `*/${step}`, `${one}/${step}`][kind] ?? '*',
    )
const field = (max: number, min = 0) =>
  fc.array(item(max, min), { minLength: 1, maxLength: 3 }).map((items) => items.join(','))

const cron: Parser = {
  name: 'cron',
  seeds: () =>
    ['*/20 * * * *', '0-30/10,59 8 1,31 JAN-dec/2 MON-SUN', '30 0 0 ? * 5', '0 0 0 29 2 * 2096', '15 2 * * 0,7'].map(
      (text) => Buffer.from(text),
    ),
  words: [' ', '*', '/', '-', ',', '?', 'L', 'W', '#', 'SUN', 'sat', 'FEB', '7', '59', '2099', '\t', '@daily'],
  drawn: fc.oneof(
    fc.tuple(field(59), field(23), field(31, 1), field(12, 1), field(7)).map((fields) => fields.join(' ')),
    fc
      .tuple(fc.constantFrom('0', '*/15', '30'), field(59), field(23), field(31, 1), field(12, 1), field(7))
      .map((fields) => fields.join(' ')),
  ),
  cost: 3,
  check: (input) => {
    const text = input.toString().slice(0, 1024)
    let fields: CronFields
    try {
      fields = parseCron(text)
    } catch (error) {
      return refusal(error, DomainError)
    }
    const now = new Date(Date.UTC(2026, 10, 27, 4, 40))
    const zone = ZONES[input.length % ZONES.length] ?? 'UTC'
    const { calendars, instants } = timetableOf(fields, zone, now)
    assert(
      calendars.length <= 500 && instants.length <= 20_000,
      `${calendars.length} calendars, ${instants.length} instants`,
    )
    assert.deepEqual(asRead(fieldsOf(calendars)), asRead(fields))
    compareRuns(text, fields, now)
    return 'accepted'
  },
}

/** Returns fields as calendars keep them: without lists of all months or days, and with other first years. */
function asRead(fields: CronFields | undefined) {
  if (fields === undefined) return undefined
  const { daysOfMonth, months, daysOfWeek, years: _, ...rest } = fields
  const isEither = daysOfMonth !== null && daysOfWeek !== null
  const orNull = (list: number[] | null, all: number) => (list?.length === all && !isEither ? null : list)
  return {
    ...rest,
    months: months?.length === 12 ? null : months,
    daysOfMonth: orNull(daysOfMonth, 31),
    daysOfWeek: orNull(daysOfWeek, 7),
  }
}

/** Compares the next run with croner's, which does not know this service's lists that name all days. */
function compareRuns(text: string, fields: CronFields, now: Date): void {
  const bothDays = fields.daysOfMonth !== null && fields.daysOfWeek !== null
  if (bothDays && (fields.daysOfMonth?.length === 31 || fields.daysOfWeek?.length === 7)) return
  let reference: Cron
  try {
    reference = new Cron(text.trim().replaceAll(/\s+/g, ' ').replaceAll('?', '*'), { timezone: 'UTC', paused: true })
  } catch {
    // Its grammar lacks steps of single numbers.
    return
  }
  assert.deepEqual(firstRun(fields, now), reference.nextRun(now), text)
}

const timezone: Parser = {
  name: 'timezone',
  seeds: () => [...ZONES, 'utc', 'Mars/Base', '+01:00'].map((zone) => Buffer.from(zone)),
  words: ['Europe/', 'Etc/GMT+', 'America/Argentina/', '__proto__', 'constructor'],
  drawn: fc.constantFrom(...Intl.supportedValuesOf('timeZone')),
  check: (input) => {
    try {
      checkTimezone(input.toString())
    } catch (error) {
      return refusal(error, DomainError)
    }
    new Intl.DateTimeFormat('en', { timeZone: input.toString() })
    return 'accepted'
  },
}

const SESSION = '018f0000-0000-7000-8000-000000000001'
const ids = createEventIds(Buffer.alloc(32, 7))
const MAX_SEQUENCE = 2 ** 32 - 1
const drawnId = fc
  .tuple(fc.integer({ min: 0, max: MAX_SEQUENCE }), fc.integer({ min: 0, max: 2 ** 48 - 1 }))
  .map(([sequence, at]) => {
    const id = ids.encode(SESSION, sequence, at)
    assert.equal(ids.decode(SESSION, id), sequence)
    return id
  })

const eventId: Parser = {
  name: 'event-id',
  seeds: () => [Buffer.from(ids.encode(SESSION, 1, 1.7e12)), Buffer.from(ids.encode(SESSION, MAX_SEQUENCE, 0))],
  words: ['event_', 'message_', '7', 'f', '\n'],
  drawn: drawnId,
  check: (input) => {
    const id = input.toString()
    try {
      const sequence = ids.decode(SESSION, id)
      const at = Number.parseInt(id.slice('event_'.length, 'event_'.length + 12), 16)
      assert.equal(ids.encode(SESSION, sequence, at), id)
      return 'accepted'
    } catch (error) {
      return refusal(error, DomainError)
    }
  },
}

/** Header of an answer, as its receivers read it. */
const retryAfter: Parser = {
  name: 'retry-after',
  seeds: () => ['5', ' 1.5 ', 'Fri, 27 Nov 2026 04:40:00 GMT', 'soon', '-1'].map((text) => Buffer.from(text)),
  words: ['0', '9', '.', ' ', 'GMT', 'Jan', 'e', '-'],
  drawn: fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
  check: (input) => {
    // No header has line breaks or other controls.
    const text = input.toString('latin1').replaceAll(/[^\x20-\x7e]/g, '')
    const headers = new Headers({ 'retry-after': text })
    const asked = [
      readRetryAfter({ 'retry-after': text }),
      readRetryAfter({ 'retry-after-ms': text }),
      retryAfterMs(headers),
      new StatusError(new Response(null, { status: 429, headers }), '').retryAfterSecs,
    ]
    for (const ms of asked) {
      assert(ms === undefined || (Number.isFinite(ms) && ms >= 0), `${ms}`)
      const pauses = [retryDelayMs(1, ms), backOffMs({ attempts: 1, ageMs: 0, retryAfterMs: ms }, 0.5) ?? 0]
      for (const pause of pauses) assert(Number.isInteger(pause) && pause >= 0 && pause <= 2 ** 31, `${pause}`)
      assert(!/Infinity|NaN|e\+/.test(longPause(ms)), longPause(ms))
    }
    return asked.some((ms) => ms !== undefined) ? 'accepted' : 'refused'
  },
}

export const TIMES: Parser[] = [cron, timezone, eventId, retryAfter]
