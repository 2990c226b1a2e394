import { setTimeout as sleep } from 'node:timers/promises'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import { call, createScriptedSession, createSession, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { killProcesses, type ServiceProcess, startApiProcess } from '../support/process.ts'
import { type Proxy as ServerProxy, startProxy } from '../support/proxy.ts'
import { answerOf, expectSoundRecord } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'

const AWAY_MS = 6000
/** Least time between two lines of the same cause, less what timers may be early. */
const QUIET_MS = 9500
const TEXT = Array.from({ length: 40 }, (_, index) => `word${index}`).join(' ')

let database: TestDatabase
let postgres: ServerProxy
let redis: ServerProxy
let service: TestService
/** API and worker in one process, whose log is looked at. */
let main: ServiceProcess & { url: string }

beforeAll(async () => {
  database = await cloneDatabase()
  const databaseUrl = new URL(database.url)
  postgres = await startProxy(databaseUrl.host)
  databaseUrl.host = postgres.address
  const redisUrl = new URL(process.env.REDIS_URL ?? '')
  redis = await startProxy(redisUrl.host)
  redisUrl.host = redis.address
  const environment = { DATABASE_URL: databaseUrl.toString(), REDIS_URL: redisUrl.toString() }
  service = await startService({ worker: false, environment })
  main = await startApiProcess(service, 'main.ts')
})
afterAll(async () => {
  await killProcesses()
  await service.stop()
  await Promise.all([postgres.close(), redis.close()])
  await database.drop()
})

type Line = { level: string; msg: string; time: string }

/** Expects warnings without stacks, each at most once in ten seconds. */
function expectQuiet(lines: string[]): void {
  const parsed = lines.flatMap((line): Line[] => (line.startsWith('{') ? [JSON.parse(line)] : []))
  expect(lines.filter((line) => line.includes('"stack"') || /\\n\s+at /.test(line))).toEqual([])
  expect(parsed.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
  const latest = new Map<string, number>()
  for (const line of parsed.filter(({ level }) => level === 'warn')) {
    const at = Date.parse(line.time)
    expect({ line, sinceMs: at - (latest.get(line.msg) ?? 0) > QUIET_MS }).toEqual({ line, sinceMs: true })
    latest.set(line.msg, at)
  }
  expect(latest.size).toBeGreaterThan(0)
}

/** Makes every kind of request again and again while Postgres and Redis are away. */
async function ask(sessionId: string, until: number): Promise<void> {
  while (Date.now() < until) {
    await Promise.all([
      call(main.url, 'GET', '/v1/sessions'),
      call(main.url, 'GET', `/v1/sessions/${sessionId}/events`),
      call(main.url, 'POST', `/v1/sessions/${sessionId}/messages`, textMessage('Hello')),
      call(main.url, 'GET', '/health/ready'),
    ])
    await sleep(100)
  }
}

it('an outage that is made good is told in a few warnings', async () => {
  const idle = await createSession(main.url)
  const ids = await Promise.all(
    Array.from({ length: 3 }, () => createScriptedSession(main.url, [{ text: TEXT, tokens_per_second: 8 }])),
  )
  const streams = await Promise.all(ids.map((id) => openStream(main.url, `/v1/sessions/${id}/sse`)))
  await Promise.all(ids.map((id) => call(main.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))))
  await Promise.all(streams.map((stream) => stream.until((frame) => frame.event === 'output.message.delta')))
  for (const proxy of [postgres, redis]) proxy.cut()
  await ask(idle, Date.now() + AWAY_MS)
  for (const proxy of [postgres, redis]) proxy.mend()
  const ready = async () => (await call(main.url, 'GET', '/health/ready')).body.status === 'ready'
  await waitFor(ready, 'the service to find Postgres and Redis again')
  for (const [index, id] of ids.entries()) {
    await streams[index]?.until((frame) => frame.event === 'session.idled')
    streams[index]?.close()
    const events = await waitUntilIdle(main.url, id)
    expectSoundRecord(events)
    expect(answerOf(events)).toBe(TEXT)
  }
  expectQuiet(main.lines)
})
