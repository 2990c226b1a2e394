import { Redis } from 'ioredis'
import type { Service } from '../../scripts/services.ts'
import {
  call,
  createScriptedSession,
  type Json,
  listEvents,
  textMessage,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { privateRedis } from '../support/private-services.ts'
import { answerOf, compactTypes, expectSoundRecord, firstTurnTypes } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'

const TEXT = Array.from({ length: 30 }, (_, index) => `word${index}`).join(' ')
const SLOW = { text: TEXT, tokens_per_second: 12 }
/** Without Redis streams read the record each half second; with it back, all are compared with the record. */
const MOST_DELAY_MS = 3000

const place = privateRedis()
let redis: Service
let service: TestService
let urls: string[]

beforeAll(async () => {
  redis = await place.start()
  service = await startService({ environment: { REDIS_URL: redis.url } })
  urls = [service.url, (await service.startPeer()).url]
}, 60_000)
afterAll(async () => {
  await service.stop()
  await redis.stop()
  await place.remove()
}, 30_000)

async function startTurn(step: object): Promise<{ id: string; streams: OpenStream[] }> {
  const id = await createScriptedSession(service.url, [step])
  const streams = await Promise.all(urls.map((url) => openStream(url, `/v1/sessions/${id}/sse`)))
  await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
  return { id, streams }
}

const deltas = (events: Json[]) => events.filter((event) => event.type === 'output.message.delta').length

/** Waits until the turn has gone on by some deltas, in the record. */
async function untilMoreDeltas(id: string): Promise<void> {
  const before = deltas(await listEvents(service.url, id))
  await waitFor(async () => deltas(await listEvents(service.url, id)) >= before + 3, 'the turn to go on')
}

/** All streams tell the whole record, each event once, and not much later than it happened. */
async function expectWholeStreams(id: string, streams: OpenStream[]): Promise<number> {
  const record = await waitUntilIdle(service.url, id)
  const idleAt = Date.now()
  await Promise.all(streams.map((stream) => stream.until((frame) => frame.event === 'session.idled')))
  const delayMs = Date.now() - idleAt
  expectSoundRecord(record)
  expect(compactTypes(record)).toEqual(firstTurnTypes())
  expect(answerOf(record)).toBe(TEXT)
  for (const stream of streams) {
    stream.close()
    expect(stream.events()).toEqual(record)
  }
  expect(delayMs).toBeLessThan(MOST_DELAY_MS)
  return delayMs
}

async function withAdmin(work: (admin: Redis) => Promise<unknown>): Promise<void> {
  const admin = new Redis(redis.url)
  await work(admin)
  admin.disconnect()
}

describe('streams equal the record', () => {
  it('when Redis is stopped and started again in mid-turn', async () => {
    const { id, streams } = await startTurn(SLOW)
    await untilMoreDeltas(id)
    await redis.stop()
    const stoppedAt = Date.now()
    await untilMoreDeltas(id)
    const { length } = await listEvents(service.url, id)
    await Promise.all(streams.map((stream) => stream.until((frame) => frame.data?.sequence === length)))
    expect(Date.now() - stoppedAt).toBeLessThan(MOST_DELAY_MS)
    redis = await place.start()
    await expectWholeStreams(id, streams)
  })

  it('when Redis is killed and comes back without its data', async () => {
    const { id, streams } = await startTurn(SLOW)
    await untilMoreDeltas(id)
    await redis.kill()
    await place.remove()
    redis = await place.start()
    await expectWholeStreams(id, streams)
  })

  it('when all of Redis is deleted in mid-turn, again and again', async () => {
    const { id, streams } = await startTurn(SLOW)
    for (let time = 0; time < 3; time++) {
      await untilMoreDeltas(id)
      await withAdmin((admin) => admin.flushall())
    }
    await expectWholeStreams(id, streams)
  })

  it('when Redis breaks every connection in mid-turn', async () => {
    const { id, streams } = await startTurn(SLOW)
    for (let time = 0; time < 3; time++) {
      await untilMoreDeltas(id)
      await withAdmin((admin) => admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'))
    }
    await expectWholeStreams(id, streams)
  })

  it('when Redis is away from the start of the turn to its end', async () => {
    await redis.stop()
    const { id, streams } = await startTurn({ text: TEXT, tokens_per_second: 100 })
    const delayMs = await expectWholeStreams(id, streams)
    process.stdout.write(`without Redis: the last event came ${delayMs} ms after it was recorded\n`)
    redis = await place.start()
  })
})

describe('when Redis is back', () => {
  it('events come over it again, long before the next look at the record', async () => {
    await redis.stop()
    redis = await place.start()
    const ready = async () => (await call(urls[1] ?? '', 'GET', '/health/ready')).status === 200
    await waitFor(ready, 'the service to find Redis again')
    const relayed = async () => {
      const { id, streams } = await startTurn({ text: 'Hi' })
      const record = await waitUntilIdle(service.url, id)
      const [first] = await Promise.all(
        streams.map((stream) => stream.until((frame) => frame.event === 'session.idled')),
      )
      const delayMs = Date.now() - Date.parse(record.at(-1).ts)
      for (const stream of streams) stream.close()
      return first !== undefined && delayMs < 400
    }
    await waitFor(relayed, 'events to come at once')
  })
})
