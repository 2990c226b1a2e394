import {
  call,
  createScriptedSession,
  createSession,
  type Json,
  listEvents,
  textMessage,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { answerOf, compactTypes, expectSoundRecord, firstTurnTypes } from '../support/record.ts'
import { type RedisSite, startRedisSite } from '../support/redis-site.ts'
import type { TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'

const TEXT = Array.from({ length: 30 }, (_, index) => `word${index}`).join(' ')
const SLOW = { text: TEXT, tokens_per_second: 8 }

let site: RedisSite
let service: TestService
let urls: string[]
beforeAll(async () => {
  site = await startRedisSite()
  service = site.service
  urls = [service.url, (await service.startPeer()).url]
})
afterAll(() => site.close())

async function startTurn(step: object): Promise<{ id: string; streams: OpenStream[] }> {
  const id = await createScriptedSession(service.url, [step])
  const streams = await Promise.all(urls.map((url) => openStream(url, `/v1/sessions/${id}/sse`)))
  await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
  return { id, streams }
}

const deltas = (events: Json[]) => events.filter((event) => event.type === 'output.message.delta').length

/** Waits until the record has some more deltas, or the turn has ended. */
async function untilMoreDeltas(id: string): Promise<void> {
  const before = deltas(await listEvents(service.url, id))
  const hasGoneOn = async () => {
    const events = await listEvents(service.url, id)
    return deltas(events) >= before + 3 || events.at(-1)?.type === 'session.idled'
  }
  await waitFor(hasGoneOn, 'the turn to go on')
}

/**
 * Expects that all streams deliver the whole record, each event once. Returns the delay of the last event in
 * milliseconds.
 */
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
  return delayMs
}

describe('streams equal the record', () => {
  it('when Redis is stopped and started again in mid-turn', async () => {
    const { id, streams } = await startTurn(SLOW)
    await untilMoreDeltas(id)
    await site.stopRedis()
    await untilMoreDeltas(id)
    const { length } = await listEvents(service.url, id)
    await Promise.all(streams.map((stream) => stream.until((frame) => frame.data?.sequence === length)))
    await site.startRedis()
    await expectWholeStreams(id, streams)
  })

  it('when Redis is killed and comes back without its data', async () => {
    const { id, streams } = await startTurn(SLOW)
    await untilMoreDeltas(id)
    await site.loseRedis()
    await site.startRedis()
    await expectWholeStreams(id, streams)
  })

  it('when all of Redis is deleted in mid-turn, again and again', async () => {
    const { id, streams } = await startTurn(SLOW)
    for (let time = 0; time < 3; time++) {
      await untilMoreDeltas(id)
      await site.askRedis((admin) => admin.flushall())
    }
    await expectWholeStreams(id, streams)
  })

  it('when Redis breaks every connection in mid-turn', async () => {
    const { id, streams } = await startTurn(SLOW)
    for (let time = 0; time < 3; time++) {
      await untilMoreDeltas(id)
      await site.askRedis((admin) => admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'))
    }
    await expectWholeStreams(id, streams)
  })

  it('when Redis is away from the start of the turn to its end', async () => {
    await site.stopRedis()
    const { id, streams } = await startTurn({ text: TEXT, tokens_per_second: 100 })
    const delayMs = await expectWholeStreams(id, streams)
    process.stdout.write(`without Redis: the last event came ${delayMs} ms after it was recorded\n`)
    await site.startRedis()
  })
})

describe('when Redis is back', () => {
  it('events are published over it again', async () => {
    await site.stopRedis()
    await site.startRedis()
    const ready = async () => (await call(service.url, 'GET', '/health/ready')).body.status === 'ready'
    await waitFor(ready, 'the service to find Redis again')
    const relayed = async () => {
      const id = await createSession(service.url)
      // A subscriber that is ahead of the record gets nothing from its checks.
      const inbox = service.platform.deps.events.broker.subscribe(toUuid(id), () => Number.POSITIVE_INFINITY)
      // The other process publishes the message.
      await call(urls[1] ?? '', 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
      await waitUntilIdle(service.url, id)
      const { entries } = inbox.take()
      inbox.close()
      return entries.some(({ type }) => type === 'input.message')
    }
    await waitFor(relayed, 'events to come over Redis')
  })
})
