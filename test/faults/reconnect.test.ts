import { call, createScriptedSession, type Json, listEvents, textMessage, waitUntilIdle } from '../support/http.ts'
import { expectSoundRecord } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'

const STEP = { thinking: 'one two three', text: 'four five six seven eight nine ten', tokens_per_second: 15 }
const TURNS = 3
/** Number of streams opened at once. A session allows 12. */
const STREAMS_AT_ONCE = 10

let service: TestService
beforeAll(async () => {
  service = await startService({ sse: { heartbeatMs: 100 } })
})
afterAll(() => service.stop())

const post = (id: string, text: string) => call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage(text))

async function runTurns(): Promise<string> {
  const id = await createScriptedSession(service.url, Array(TURNS).fill(STEP))
  for (let turn = 1; turn <= TURNS; turn++) await post(id, `message ${turn}`)
  return id
}

/** Waits for the last event and the heartbeat after it, then returns everything that the stream delivered. */
async function everythingOf(stream: OpenStream, lastId: string | undefined): Promise<Json[]> {
  if (lastId !== undefined) await stream.until((frame) => frame.id === lastId)
  const heartbeats = () => stream.frames.filter((frame) => frame.comment !== undefined).length
  const before = heartbeats()
  await stream.until(() => heartbeats() > before)
  stream.close()
  return stream.events()
}

/** Runs `work` for all items in groups of `size`. */
async function inGroups<T>(items: T[], size: number, work: (item: T, index: number) => Promise<void>): Promise<void> {
  for (let start = 0; start < items.length; start += size) {
    await Promise.all(items.slice(start, start + size).map((item, offset) => work(item, start + offset)))
  }
}

describe('a client that comes back with the id of', () => {
  let id: string
  let record: Json[]
  beforeAll(async () => {
    id = await runTurns()
    record = await waitUntilIdle(service.url, id)
  })

  it('any event gets exactly the rest from the list', async () => {
    expectSoundRecord(record)
    expect(record.filter((event) => event.type === 'output.message.delta').length).toBeGreaterThan(TURNS * 2)
    await inGroups(record, STREAMS_AT_ONCE, async (event, index) => {
      expect(await listEvents(service.url, id, `?since_id=${event.id}`)).toEqual(record.slice(index + 1))
    })
  })

  it('any event gets exactly the rest from the stream', async () => {
    await inGroups(record, STREAMS_AT_ONCE, async (event, index) => {
      const stream = await openStream(service.url, `/v1/sessions/${id}/sse?since_id=${event.id}`)
      const rest = record.slice(index + 1)
      expect(await everythingOf(stream, rest.at(-1)?.id)).toEqual(rest)
    })
  })

  it('any event gets exactly the rest that it asked for when it filters', async () => {
    const filter = 'types=output.message.delta&types=reason.thinking.delta&types=turn.completed&exclude=turn.completed'
    const wanted = record.filter((event) => event.type.endsWith('.delta'))
    await inGroups(record, STREAMS_AT_ONCE, async (event) => {
      const rest = wanted.filter((delta) => delta.sequence > event.sequence)
      expect(await listEvents(service.url, id, `?since_id=${event.id}&${filter}`)).toEqual(rest)
      const stream = await openStream(service.url, `/v1/sessions/${id}/sse?${filter}`, {
        headers: { 'Last-Event-ID': event.id },
      })
      expect(await everythingOf(stream, rest.at(-1)?.id)).toEqual(rest)
    })
  })
})

describe('while turns run', () => {
  it('a client that comes back after each single event receives the record', async () => {
    const id = await runTurns()
    const received: Json[] = []
    for (let since = ''; received.at(-1)?.type !== 'session.idled'; since = `?since_id=${received.at(-1).id}`) {
      const stream = await openStream(service.url, `/v1/sessions/${id}/sse${since}`)
      await stream.until((frame) => frame.id !== undefined)
      stream.close()
      received.push(stream.events()[0])
    }
    expect(received).toEqual(await listEvents(service.url, id))
    expectSoundRecord(received)
  })

  it('clients that join at any moment receive the rest of the record from there on', async () => {
    const id = await runTurns()
    const watch = await openStream(service.url, `/v1/sessions/${id}/sse`)
    const joined: { after: number; stream: OpenStream }[] = []
    for (let sequence = 4; sequence <= 24; sequence += 4) {
      const { data } = await watch.until((frame) => frame.data?.sequence === sequence)
      const stream = await openStream(service.url, `/v1/sessions/${id}/sse?since_id=${data.id}`)
      joined.push({ after: sequence, stream })
    }
    const record = await waitUntilIdle(service.url, id)
    expect(await everythingOf(watch, record.at(-1).id)).toEqual(record)
    for (const { after, stream } of joined) {
      expect(await everythingOf(stream, record.at(-1).id)).toEqual(record.slice(after))
    }
  })
})
