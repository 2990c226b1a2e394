import pg from 'pg'
import type { RunningServices } from '../dev/services/index.ts'
import { spawnApp } from './app.ts'
import { startChild } from './child.ts'
import { goal, print } from './report.ts'
import {
  EXPECTED,
  forEachSchedule,
  IN_FLIGHT,
  type Measured,
  measure,
  nextWindow,
  type Run,
  requireInTime,
  SCHEDULES,
  type Spread,
  secondOf,
  waitForRuns,
} from './schedule-window.ts'
import type { FloorMeasured } from './schedules-floor.ts'
import { percentile } from './statistics.ts'

const PAGE = 100
const SPREADS: Spread[] = ['spread', 'at once']
const MAX_EXTRA_MS = 5000
/** Time in which the service removes the clocks of deleted schedules. */
const REMOVAL_MS = 60_000
const ENVIRONMENT = { SCHEDULES_MAX_COUNT: `${SCHEDULES}`, SCHEDULE_EXECUTIONS_MAX_RUNNING: '10000' }

type ServiceMeasured = Measured & { createMs: number; createP99: number; listMs: number }
type Row = { spread: Spread; bare: FloorMeasured; service: ServiceMeasured }

/**
 * Creates 1,000 schedules of the activity noop, all due twice within two minutes, their seconds spread over the minute
 * and then all at the same second. Before each, as many bare schedules of Temporal do the same. Prints both and the
 * goals. Takes 20 minutes or more.
 */
export async function benchSchedules(services: RunningServices, port: number): Promise<boolean> {
  const app = await spawnApp(services, port, ENVIRONMENT)
  const pool = new pg.Pool({ connectionString: services.databaseUrl, max: 2 })
  try {
    const rows = await measureAll(services.temporalAddress, pool, `http://127.0.0.1:${port}/v1/durable/schedules`)
    return rows.map(report).every(Boolean)
  } finally {
    await pool.end()
    await app.stop()
  }
}

async function measureAll(temporalAddress: string, pool: pg.Pool, url: string): Promise<Row[]> {
  const floor = await startChild('./schedules-floor.ts', { args: [temporalAddress] })
  const rows: Row[] = []
  try {
    for (const spread of SPREADS) {
      print(`${SCHEDULES} schedules, seconds ${spread === 'spread' ? 'spread over the minute' : 'all alike'} …`)
      const bare = await floor.ask<FloorMeasured | { failed: string }>(spread)
      if ('failed' in bare) throw new Error(bare.failed)
      rows.push({ spread, bare, service: await measureService(pool, url, spread) })
    }
    return rows
  } finally {
    await floor.stop()
  }
}

async function measureService(pool: pg.Pool, url: string, spread: Spread): Promise<ServiceMeasured> {
  const window = nextWindow()
  const ids: string[] = []
  try {
    const times = await forEachSchedule(async (number) => {
      ids.push(
        await create(url, {
          name: `${spread} ${number}`,
          cron_expression: `${secondOf(number, spread)} ${window.minutes.join(',')} ${window.hour} * * *`,
          // Where Temporal starts the launches of one minute in the next, the earlier run would count as missed.
          catch_up_missed: true,
          target: { type: 'activity', name: 'noop', input: {} },
        }),
      )
    })
    const listMs = await timeLists(url)
    requireInTime(window)
    await waitForRuns(window, () => countRuns(pool, ids))
    const created = { createMs: percentile(times, 0.5), createP99: percentile(times, 0.99), listMs }
    return { ...measure(await readRuns(pool, ids)), ...created }
  } finally {
    await removeAll(pool, url, ids)
  }
}

async function create(url: string, schedule: object): Promise<string> {
  const headers = { 'Content-Type': 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(schedule) })
  if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`)
  return ((await answer.json()) as { id: string }).id
}

/** Reads the whole list and returns the p50 of its pages in ms. */
async function timeLists(url: string): Promise<number> {
  const times: number[] = []
  for (let offset = 0; offset < SCHEDULES; offset += PAGE) {
    const startedAt = performance.now()
    const answer = await fetch(`${url}?limit=${PAGE}&offset=${offset}`)
    const { data, total } = (await answer.json()) as { data: unknown[]; total: number }
    times.push(performance.now() - startedAt)
    if (data.length !== PAGE || total !== SCHEDULES) throw new Error(`a page has ${data.length} of ${total} schedules`)
  }
  return percentile(times, 0.5)
}

async function countRuns(pool: pg.Pool, ids: string[]): Promise<number> {
  const { rows } = await pool.query(
    `SELECT count(*)::integer AS count FROM schedule_executions
    WHERE schedule_id = ANY ($1::uuid[]) AND status = 'completed'`,
    [ids],
  )
  return rows[0].count
}

/** Reads the executions that have completed. Any other counts as missed. */
async function readRuns(pool: pg.Pool, ids: string[]): Promise<Map<string, Run[]>> {
  const { rows } = await pool.query<{ schedule_id: string; scheduled_at: Date; started_at: Date }>(
    `SELECT schedule_id, scheduled_at, started_at FROM schedule_executions
    WHERE schedule_id = ANY ($1::uuid[]) AND status = 'completed'`,
    [ids],
  )
  const runs = new Map<string, Run[]>()
  for (const { schedule_id, scheduled_at, started_at } of rows) {
    const run = { dueAt: scheduled_at.getTime(), startedAt: started_at.getTime() }
    const key = `${schedule_id} ${run.dueAt}`
    runs.set(key, [...(runs.get(key) ?? []), run])
  }
  return runs
}

/** Deletes the schedules, and waits until the service has removed them from Temporal. */
async function removeAll(pool: pg.Pool, url: string, ids: string[]): Promise<void> {
  await forEachSchedule(async (number) => {
    if (ids[number] !== undefined) await fetch(`${url}/${ids[number]}`, { method: 'DELETE' })
  })
  const countLeft = async (): Promise<number> => {
    const { rows } = await pool.query(
      'SELECT count(*)::integer AS count FROM schedules WHERE deleted_at IS NULL OR clock_due_at IS NOT NULL',
    )
    return rows[0].count
  }
  for (const until = Date.now() + REMOVAL_MS; Date.now() < until && (await countLeft()) > 0; ) {
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  const left = await countLeft()
  if (left > 0) print(`${left} schedules are left in Temporal`)
}

function report({ spread, bare, service }: Row): boolean {
  const ms = (value: number) => value.toFixed(1).padStart(9)
  const line = (name: string, { createMs, runs, missed, twice, delayP50, delayP99 }: FloorMeasured) =>
    `${name.padEnd(24)}${ms(createMs)}${`${runs}`.padStart(8)}${`${missed}`.padStart(8)}${`${twice}`.padStart(7)}${ms(delayP50)}${ms(delayP99)}`
  print(`${`${spread} (ms)`.padEnd(24)}   create    runs  missed  twice  delay50  delay99`)
  print(line('bare schedules', bare))
  print(line('service', service))
  print(
    `creations, ${IN_FLIGHT} at once: p99 ${service.createP99.toFixed(1)} ms; a page of ${PAGE}: ${service.listMs.toFixed(1)} ms`,
  )
  const extra = service.delayP99 - bare.delayP99
  return [
    goal(service.missed === 0 && service.twice === 0, `each of ${EXPECTED} runs once: ${service.missed} missed`),
    goal(
      extra <= MAX_EXTRA_MS,
      `p99 of the delay at most ${MAX_EXTRA_MS} ms above the bare one: ${extra.toFixed(0)} ms`,
    ),
  ].every(Boolean)
}
