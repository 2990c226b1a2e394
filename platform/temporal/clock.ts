import { type Client, isGrpcServiceError, ServiceError } from '@temporalio/client'
import { defaultPayloadConverter, msToTs, type TypedSearchAttributes, tsToDate, tsToMs } from '@temporalio/common'
import { toId } from '../../contract/kit/ids.ts'
import { newUuid } from '../../domain/kit/ids.ts'
import type { Clock, ClockSettings, NextTimes } from '../../domain/schedules/clock/clock.ts'
import { areSame, type Calendar, fieldsOf, type Timetable, timetableOf } from '../../domain/schedules/cron/calendars.ts'
import { isMistaken } from '../../domain/schedules/cron/runs-at.ts'
import { sleep } from '../../lib/sleep.ts'
import { LAUNCH_WORKFLOW, type LaunchInput } from '../../workflows/messages.ts'
import { latestTimes } from './latest-times.ts'
import type { Attributes, Labels } from './search-attributes.ts'
import type { Ask } from './temporal-health.ts'

type QueueAddress = { namespace: string; taskQueue: string }

/** Workflow task timeout: the time for which a dead worker delays a launch that it had taken. */
const WORKFLOW_TASK_TIMEOUT_MS = 4000
const CATCHUP = '365 days'
/** temporal.api.enums.v1.ScheduleOverlapPolicy */
const BUFFER_ONE = 2
/** gRPC status codes. */
const NOT_FOUND = 5
const ALREADY_EXISTS = 6
/** A deadline that has passed: the first on the worker's connection, the second on the other. */
const TIMED_OUT = [1, 4]
/** Temporal now and then loses a query about a schedule that has just changed. Another one is answered at once. */
const QUERY_MS = 1500
const MAX_QUERIES = 3
/** Looks at a schedule while it is kept. Each but the last may be followed by a change. */
const MAX_LOOKS = 5
/** Pause before another look, when Temporal has not applied a change yet, or has applied one of another process. */
const CHECK_PAUSE_MS = 50
const MAX_TIMES = 10
/** Tolerated difference between this machine's clock and the record's. */
const SKEW_MS = 5000
/** Shortest span of time in which next times are looked for. Each further one is longer by SPAN_FACTOR. */
const MIN_SPAN_MS = 15 * 60_000
const SPAN_FACTOR = 16
/** Temporal knows no later time. */
const END = Date.UTC(2101, 0)

/** The clock of the schedules, on Temporal Schedules. */
export function createClock(ask: Ask, attributes: Attributes, place: QueueAddress): Clock {
  return {
    keep: (settings) =>
      ask((client) =>
        attributes.startWith(labelsOf(settings), (searchAttributes) =>
          keepSchedule(client, place, settings, searchAttributes),
        ),
      ),
    remove: async (scheduleId) => {
      const request = (client: Client) => ({ ...nameOf(scheduleId, place), identity: client.options.identity })
      await ask((client) => unless(NOT_FOUND, client.workflowService.deleteSchedule(request(client))))
    },
    nextTimes: (scheduleId) => ask((client) => findNextTimes(client, place, scheduleId)),
    timesBetween: async (scheduleId, after, until, most) => {
      const known = await ask((client) => describe(client, place, scheduleId))
      if (known === undefined) throw new Error('Temporal does not have the schedule')
      return latestTimes(
        { after, until, most },
        {
          list: (from, to) => ask((client) => listTimes(client, place, scheduleId, from, to)),
          isRun: runFilter(known),
        },
      )
    },
  }
}

const labelsOf = ({ scheduleId, sessionId, organizationId }: ClockSettings): Labels => ({
  ScheduleId: scheduleId,
  SessionId: sessionId && toId('session', sessionId),
  OrganizationId: toId('org', organizationId),
})

const nameOf = (scheduleId: string, { namespace }: QueueAddress) => ({
  namespace,
  scheduleId: `schedule-${scheduleId}`,
})

/**
 * Creates or updates a schedule that differs from the settings. Temporal silently ignores an update whose conflict token
 * is of an earlier state: so a delayed update undoes no other, and the schedule is read again to see whether the update
 * was applied. Returns the schedule's revision if it differs and is later.
 */
async function keepSchedule(
  client: Client,
  place: QueueAddress,
  settings: ClockSettings,
  searchAttributes: TypedSearchAttributes | undefined,
): Promise<number | undefined> {
  const timetable = timetableOf(settings.fields, settings.timezone, new Date())
  const schedule = scheduleOf(place, settings, timetable, searchAttributes)
  const request = { ...nameOf(settings.scheduleId, place), schedule, identity: client.options.identity }
  const { workflowService } = client
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    if (looks > 1) await sleep(CHECK_PAUSE_MS)
    const known = await describe(client, place, settings.scheduleId)
    if (known === undefined) {
      const creating = workflowService.createSchedule({ ...request, requestId: newUuid() })
      if ((await unless(ALREADY_EXISTS, creating)) !== undefined) return undefined
      continue
    }
    if (isAs(known, settings, timetable, place)) return undefined
    if (known.revision > settings.revision) return known.revision
    const { conflictToken } = known
    await unless(NOT_FOUND, workflowService.updateSchedule({ ...request, requestId: newUuid(), conflictToken }))
  }
  throw new Error('Temporal did not apply the change of a schedule')
}

/** Builds Temporal's view of a schedule: ids and times. */
function scheduleOf(
  place: QueueAddress,
  settings: ClockSettings,
  { calendars, instants }: Timetable,
  searchAttributes: TypedSearchAttributes | undefined,
) {
  const { timezone, pausedBecause } = settings
  return {
    spec: {
      structuredCalendar: calendars,
      // Intervals count from 1970 on, so each also ends decades after its instant: `isMistaken` drops that.
      interval: instants.map((instant) => ({ interval: msToTs(instant.getTime()) })),
      timezoneName: timezone,
    },
    action: { startWorkflow: { ...launchOf(place, settings), ...(searchAttributes && indexed(searchAttributes)) } },
    policies: { overlapPolicy: BUFFER_ONE, catchupWindow: msToTs(CATCHUP) },
    state: { paused: pausedBecause !== null, notes: pausedBecause ?? '' },
  }
}

/** Encodes the start of a launch. The public client does that too, but updates without a conflict token. */
function launchOf({ taskQueue }: QueueAddress, { scheduleId, organizationId, revision }: ClockSettings) {
  const input: LaunchInput = { organizationId: toId('org', organizationId), scheduleId, revision }
  return {
    workflowId: `launch-${scheduleId}`,
    workflowType: { name: LAUNCH_WORKFLOW },
    taskQueue: { name: taskQueue },
    input: { payloads: [defaultPayloadConverter.toPayload(input)] },
    workflowTaskTimeout: msToTs(WORKFLOW_TASK_TIMEOUT_MS),
    userMetadata: { summary: defaultPayloadConverter.toPayload(`launches schedule ${scheduleId}`) },
  }
}

const KEYWORD = Buffer.from('Keyword')

/** Encodes attributes. All are keywords. */
function indexed(attributes: TypedSearchAttributes) {
  const fields = attributes.getAll().map(({ key, value }) => {
    const { metadata, data } = defaultPayloadConverter.toPayload(value)
    return [key.name, { metadata: { ...metadata, type: KEYWORD }, data }]
  })
  return { searchAttributes: { indexedFields: Object.fromEntries(fields) } }
}

type Known = {
  revision: number
  isPaused: boolean
  timetable: Timetable
  timezone: string
  taskQueue: string | undefined
  /** Latest of the next times that Temporal names. */
  lastTime: Date | undefined
  changedAt: Date
  conflictToken: Uint8Array | undefined
}

/** Returns undefined when there is none. */
async function describe(client: Client, place: QueueAddress, scheduleId: string): Promise<Known | undefined> {
  const found = await query(client, () =>
    unless(NOT_FOUND, client.workflowService.describeSchedule(nameOf(scheduleId, place))),
  )
  if (found === undefined) return undefined
  const { spec, action, state } = found.schedule ?? {}
  const input = action?.startWorkflow?.input?.payloads?.[0]
  const last = found.info?.futureActionTimes?.at(-1)
  return {
    revision: input ? defaultPayloadConverter.fromPayload<LaunchInput>(input).revision : 0,
    isPaused: state?.paused ?? false,
    // Decoded messages have all their fields.
    timetable: {
      calendars: (spec?.structuredCalendar ?? []) as Calendar[],
      instants: (spec?.interval ?? []).map(({ interval }) => new Date(tsToMs(interval))),
    },
    timezone: spec?.timezoneName || 'UTC',
    taskQueue: action?.startWorkflow?.taskQueue?.name ?? undefined,
    lastTime: last && tsToDate(last),
    changedAt: new Date(
      Math.max(tsToMs(found.info?.createTime), found.info?.updateTime ? tsToMs(found.info.updateTime) : 0),
    ),
    conflictToken: found.conflictToken ?? undefined,
  }
}

/** Whether a schedule matches the settings, or a later revision. Its other fields change only with its revision. */
const isAs = (
  known: Known,
  { revision, timezone, pausedBecause }: ClockSettings,
  timetable: Timetable,
  place: QueueAddress,
) =>
  known.revision >= revision &&
  known.isPaused === (pausedBecause !== null) &&
  known.timezone === timezone &&
  known.taskQueue === place.taskQueue &&
  areSame(known.timetable, timetable)

/** Returns a filter of times, false for a time that only Temporal takes for a run. */
function runFilter({ timetable, timezone }: Known): (time: Date) => boolean {
  const fields = fieldsOf(timetable.calendars)
  return (time) => fields === undefined || !isMistaken(fields, timezone, time)
}

/** Returns the times after `from` and up to `to`: the first 1000. */
async function listTimes(
  client: Client,
  place: QueueAddress,
  scheduleId: string,
  from: Date,
  to: Date,
): Promise<Date[]> {
  const request = {
    ...nameOf(scheduleId, place),
    startTime: msToTs(from.getTime()),
    endTime: msToTs(to.getTime()),
  }
  const { startTime } = await query(client, () => client.workflowService.listScheduleMatchingTimes(request))
  return startTime.map(tsToDate)
}

/**
 * Looks where Temporal says that the next times are. While it has yet to make up for an outage it names past ones, and
 * none after the last, which may just have come: longer spans are searched then.
 */
async function findNextTimes(client: Client, place: QueueAddress, scheduleId: string): Promise<NextTimes | undefined> {
  const since = new Date(Date.now() - SKEW_MS)
  const known = await describe(client, place, scheduleId)
  if (known === undefined || known.isPaused) return undefined
  const { changedAt, lastTime = since } = known
  let span = Math.max(MIN_SPAN_MS, lastTime.getTime() - since.getTime())
  for (;;) {
    const until = new Date(Math.min(END, since.getTime() + span))
    const found = await listTimes(client, place, scheduleId, since, until)
    const times = found.filter(runFilter(known)).slice(0, MAX_TIMES)
    if (times.length > 0 || until.getTime() === END) return { since, times, changedAt }
    span *= SPAN_FACTOR
  }
}

/** Asks again when there is no answer in time. */
async function query<T>(client: Client, ask: () => Promise<T>): Promise<T> {
  for (let queries = 1; ; queries++) {
    try {
      return await client.withDeadline(Date.now() + QUERY_MS, ask)
    } catch (error) {
      const cause = error instanceof ServiceError ? error.cause : error
      if (queries === MAX_QUERIES || !isGrpcServiceError(cause) || !TIMED_OUT.includes(cause.code)) throw error
    }
  }
}

/** Resolves with undefined when Temporal refuses with this gRPC status. */
async function unless<T>(status: number, asking: Promise<T>): Promise<T | undefined> {
  try {
    return await asking
  } catch (error) {
    if (!isGrpcServiceError(error)) throw error
    if (error.code === status) return undefined
    throw new ServiceError(error.details || error.message, { cause: error })
  }
}
