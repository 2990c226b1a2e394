import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { countOf } from '../support/counts.ts'
import { type Json, listEvents, waitFor } from '../support/http.ts'
import { createRandom, type Random } from '../support/random.ts'
import { expectSoundRecord, turnsOf } from '../support/record.ts'
import { seedsOf } from '../support/seeds.ts'
import { callUntilAnswered } from '../support/storm-client.ts'
import { type StormSite, startStormSite, type Victim } from '../support/storm-site.ts'

const EVERY_MS = 10_000
const MAX_MS = 5000
const MAX_PAUSE_MS = 1000
const RUNS = countOf('disturbedRuns')
const MESSAGES = 3
const REQUESTS = 2

type Scheduled = { id: string; createdAt: number; sessionId?: string }

/** Ids of the executions whose requests have arrived. */
const arrived = new Set<string>()
const receiver = createServer((request, response) => {
  arrived.add(String(request.headers['idempotency-key']))
  response.end()
})

let site: StormSite
beforeAll(async () => {
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  site = await startStormSite(() => Number.POSITIVE_INFINITY, { ALLOW_PRIVATE_NETWORK: 'true' })
})
afterAll(async () => {
  await site.close()
  receiver.closeAllConnections()
  receiver.close()
})

const ask = (method: string, path: string, body?: object): Promise<Json> =>
  callUntilAnswered(site.urls, method, path, body)

/** Kills and freezes one after the other until a time has come. Returns what happened. */
async function disturb(victims: Victim[], random: Random, until: number): Promise<string[]> {
  const faults: string[] = []
  while (Date.now() < until) {
    const victim = victims[Math.floor(random() * victims.length)] as Victim
    const action = random() < 0.5 ? 'kill' : 'freeze'
    await victim[action](random() * MAX_MS)
    faults.push(`${action} ${victim.name}`)
    await sleep(random() * MAX_PAUSE_MS)
  }
  return faults
}

/** Creates a schedule that runs each ten seconds and makes up for whatever was missed. */
async function createSchedule(name: string, target: object): Promise<Scheduled> {
  const body = { name, cron_expression: '*/10 * * * * *', catch_up_missed: true, target }
  const { id, created_at } = await ask('POST', '/v1/durable/schedules', body)
  return { id, createdAt: Date.parse(created_at) }
}

async function createMessaging(name: string): Promise<Scheduled> {
  const { id: sessionId } = await ask('POST', '/v1/sessions', {})
  const input = { session_id: sessionId, message: name }
  return { ...(await createSchedule(name, { type: 'workflow', name: 'session_message', input })), sessionId }
}

const createRequesting = (name: string): Promise<Scheduled> => {
  const input = { url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/` }
  return createSchedule(name, { type: 'activity', name: 'http_request', input })
}

/** Waits until every run up to a time has ended. Returns the executions, oldest first. */
async function settledExecutions({ id }: Scheduled, until: number): Promise<Json[]> {
  return waitFor(async () => {
    const { data } = await ask('GET', `/v1/durable/schedules/${id}/executions?limit=100`)
    const isThere = data.some((execution: Json) => Date.parse(execution.scheduled_at) >= until)
    const due = data.filter((execution: Json) => Date.parse(execution.scheduled_at) <= until)
    const hasEnded = due.every(({ status }: Json) => status === 'completed' || status === 'failed')
    return isThere && hasEnded ? due.toReversed() : undefined
  }, `the end of all executions of ${id}`)
}

/** Returns the times at which the clock is right, after one and up to another. */
function timesBetween(after: number, until: number): string[] {
  const first = Math.floor(after / EVERY_MS) + 1
  const count = Math.floor(until / EVERY_MS) - first + 1
  return Array.from({ length: count }, (_, index) => new Date((first + index) * EVERY_MS).toISOString())
}

describe('schedules, while every part of the service is killed and frozen at random', () => {
  it.each(seedsOf('scheduleStorm'))('lose no run and double none (seed %i)', async (seed) => {
    const messaging = await Promise.all(Array.from({ length: MESSAGES }, (_, at) => createMessaging(`m${seed}-${at}`)))
    const requesting = await Promise.all(
      Array.from({ length: REQUESTS }, (_, at) => createRequesting(`r${seed}-${at}`)),
    )
    const until = Date.now() + RUNS * EVERY_MS
    const faults = await disturb(site.victims, createRandom(seed), until)

    const last = Math.ceil(Date.now() / EVERY_MS) * EVERY_MS
    for (const schedule of [...messaging, ...requesting]) {
      const executions = await settledExecutions(schedule, last)
      expect(executions.map(({ scheduled_at }) => scheduled_at)).toEqual(timesBetween(schedule.createdAt, last))
      expect(executions.filter(({ status }) => status !== 'completed')).toEqual([])
      const ids: string[] = executions.map(({ id }) => id)
      if (schedule.sessionId === undefined) {
        expect(ids.filter((id) => !arrived.has(id))).toEqual([])
      } else {
        const events = await listEvents(site.urls[0] ?? '', schedule.sessionId)
        expectSoundRecord(events)
        const turns = ids.map((id) => `turn_${id.replaceAll('-', '')}`)
        expect(
          turnsOf(events)
            .filter((turn) => turns.includes(turn))
            .toSorted(),
        ).toEqual(turns.toSorted())
      }
    }
    process.stdout.write(`${faults.length} faults, each run of ${RUNS} and more launched once: ${faults.join(', ')}\n`)
  })
})
