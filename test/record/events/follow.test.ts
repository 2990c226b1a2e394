import type { WireEvent } from '../../../contract/events.ts'
import { expandGenerations } from '../../../domain/conversation/expand-generations.ts'
import type { Deps } from '../../../domain/deps.ts'
import { publishEvents } from '../../../domain/events/live/live-stream.ts'
import { appendEvents, type NewEvent, type Writer } from '../../../domain/events/log/append.ts'
import { follow } from '../../../domain/events/read/follow.ts'
import type { EventLine } from '../../../domain/events/read/read.ts'
import { newUuid } from '../../../domain/kit/ids.ts'
import { append, createAnswer, toolEvents } from '../../support/by-hand.ts'
import { call, createSession, type Json, listEvents, textMessage, waitFor } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
/** Dependencies of the service. `quiet` records without publishing, which the test does itself. */
let deps: Deps
let quiet: Deps
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
  quiet = { ...deps, events: { ...deps.events, broker: { ...deps.events.broker, publish: () => {} } } }
})
afterAll(() => service.stop())

async function createTurn(): Promise<{
  id: string
  writer: Writer
  write: (...texts: string[]) => Promise<WireEvent[]>
}> {
  const id = await createSession(service.url)
  const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
  const writer = { sessionId: toUuid(id), turnId: toUuid(body.id) }
  const execId = newUuid()
  let accumulated = ''
  const write = async (...texts: string[]) => {
    const events = texts.map((text): NewEvent => {
      accumulated += text
      return { type: 'output.message.delta', step: 'reason:1', execId, data: { delta: text }, parts: { accumulated } }
    })
    const appended = await appendEvents(quiet, writer, events)
    if (appended.outcome !== 'appended') throw new Error(appended.outcome)
    return appended.events
  }
  return { id, writer, write }
}

/** Starts following the session. `until` waits for the event with a sequence and returns everything received. */
function startFollowing(writer: Writer, after: number, onOverflow = () => {}, from = deps) {
  const stopped = new AbortController()
  const received: EventLine[] = []
  const batches = follow(from, writer.sessionId, after, { expand: expandGenerations, onOverflow }, stopped.signal)
  const next = async (): Promise<void> => {
    const batch = await batches.next()
    if (!batch.done) received.push(...batch.value)
  }
  const until = async (sequence: number): Promise<Json[]> => {
    while ((received.at(-1)?.sequence ?? 0) < sequence) await next()
    return received.map((event) => JSON.parse(event.line))
  }
  const stop = async () => {
    stopped.abort()
    await batches.return('aborted')
  }
  return { next, until, stop }
}

const ring = (writer: Writer, events: WireEvent[]) => publishEvents(deps, writer.sessionId, writer.turnId, events)

/** Shuffles the items, always in the same way. */
const disorder = <T>(items: T[]): T[] =>
  items
    .map((item, index) => ({ item, place: (index * 7919) % 31 }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item)

describe('following a session', () => {
  it('gives the record, whatever the order and repetition of published events', async () => {
    const { id, writer, write } = await createTurn()
    const reader = startFollowing(writer, 0)
    await reader.until(1)
    const events = await write(...Array.from({ length: 30 }, (_, index) => `${index} `))
    for (const event of disorder([...events, ...events])) ring(writer, [event])
    expect(await reader.until(33)).toEqual(await listEvents(service.url, id))
    await reader.stop()
  })

  it('gives the record when every other event was not published', async () => {
    const { id, writer, write } = await createTurn()
    const reader = startFollowing(writer, 0)
    await reader.until(1)
    const events = await write(...Array.from({ length: 30 }, (_, index) => `${index} `))
    ring(
      writer,
      events.filter((_, index) => index % 2 === 1),
    )
    expect(await reader.until(33)).toEqual(await listEvents(service.url, id))
    await reader.stop()
  })

  it('gives events that were never published, after the next check of the record', async () => {
    const { id, writer, write } = await createTurn()
    const reader = startFollowing(writer, 0)
    await reader.until(1)
    await write('never ', 'told')
    expect(await reader.until(5)).toEqual(await listEvents(service.url, id))
    await reader.stop()
  })

  it('gives events too long to be published in full', async () => {
    const { id, writer, write } = await createTurn()
    const reader = startFollowing(writer, 0)
    await reader.until(1)
    ring(writer, await write('short ', 'long '.repeat(20_000), 'short again'))
    expect(await reader.until(6)).toEqual(await listEvents(service.url, id))
    await reader.stop()
  })

  it('does not read a message again for each delta that is too long to be published', async () => {
    const { id, writer, write } = await createTurn()
    let texts = 0
    const db = Object.create(deps.db, {
      $queryRaw: {
        value: (sql: TemplateStringsArray, ...values: unknown[]) => {
          if (sql.join('').includes('string_agg')) texts++
          return deps.db.$queryRaw(sql, ...values)
        },
      },
    })
    // The deltas of an abandoned attempt do not count, however long they are.
    await append(quiet, writer, [createAnswer().delta('x'.repeat(1_100_000))])
    ring(writer, await write('long '.repeat(20_000)))
    const reader = startFollowing(writer, 3, undefined, { ...deps, db })
    await reader.until(5)
    expect(texts).toBe(2)
    for (let sequence = 6; sequence < 12; sequence++) {
      ring(writer, await write('more '))
      await reader.until(sequence)
    }
    expect(texts).toBe(2)
    expect(await reader.until(11)).toEqual((await listEvents(service.url, id)).slice(3))
    await reader.stop()
  })

  it('gives no event of a type that clients do not know, replayed or live', async () => {
    const { id, writer, write } = await createTurn()
    const tellUnknown = async (step: string) => {
      const unknown = { type: 'internal.note', step, data: {} } as unknown as NewEvent
      const appended = await appendEvents(deps, writer, [unknown])
      expect(appended.outcome).toBe('appended')
    }
    await tellUnknown('first')
    ring(writer, await write('known '))
    const reader = startFollowing(writer, 0)
    await reader.until(5)
    await tellUnknown('second')
    ring(writer, await write('known too'))
    const received = await reader.until(7)
    const types = received.map(({ type }) => type)
    const accepted = ['input.message', 'session.started', 'session.activated']
    expect(types).toEqual([...accepted, 'output.message.delta', 'output.message.delta'])
    expect(await listEvents(service.url, id)).toEqual(received)
    await reader.stop()
  })

  it('gives the record to a reader that reads nothing while its inbox overflows', async () => {
    const { id, writer, write } = await createTurn()
    let overflows = 0
    const reader = startFollowing(writer, 0, () => overflows++)
    await reader.until(1)
    // A second reader shows when everything has passed through the live stream.
    const other = startFollowing(writer, 0)
    for (let batch = 0; batch < 10; batch++) {
      ring(writer, await write(...Array.from({ length: 40 }, () => 'x'.repeat(100))))
      await other.until(3 + (batch + 1) * 40)
    }
    expect(overflows).toBeGreaterThan(0)
    expect(await reader.until(403)).toEqual(await listEvents(service.url, id))
    await Promise.all([reader.stop(), other.stop()])
  })

  it('has the accumulated text in each delta when it begins in the middle of a message', async () => {
    const { writer, write } = await createTurn()
    ring(writer, await write('one ', 'two ', 'three '))
    for (const after of [3, 4, 5]) {
      const reader = startFollowing(writer, after)
      const [first] = await reader.until(6)
      expect(first.data.accumulated).toBe(
        'one two three '
          .split(' ')
          .slice(0, after - 2)
          .join(' ')
          .concat(' '),
      )
      await reader.stop()
    }
    const live = startFollowing(writer, 6)
    const waiting = live.until(7)
    ring(writer, await write('four'))
    expect((await waiting)[0].data.accumulated).toBe('one two three four')
    await live.stop()
  })

  it('is neither notified of an overflow nor cut off while it reads the record', async () => {
    const { id, writer } = await createTurn()
    let overflows = 0
    const record = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const $queryRaw = async (...given: Parameters<typeof deps.db.$queryRaw>) => {
      asked.resolve()
      await record.promise
      return deps.db.$queryRaw(...given)
    }
    const db = Object.create(deps.db, { $queryRaw: { value: $queryRaw } })
    const reader = startFollowing(writer, 0, () => overflows++, { ...deps, db })
    const all = reader.until(43)
    await asked.promise
    // A second inbox shows when the limit was exceeded.
    const inbox = deps.events.broker.subscribe(writer.sessionId, () => Number.POSITIVE_INFINITY)
    const calls = Array.from({ length: 20 }, (_, index) => toolEvents(`call_${index}`, 'x'.repeat(60_000)))
    ring(writer, await append(quiet, writer, calls.flat()))
    await waitFor(async () => inbox.take().missed, 'too much to come')
    inbox.close()
    record.resolve()
    expect(await all).toEqual(await listEvents(service.url, id))
    expect(overflows).toBe(0)
    await reader.stop()
  })

  it('ends when the session is deleted', async () => {
    const { writer } = await createTurn()
    const batches = follow(deps, writer.sessionId, 3, { expand: expandGenerations }, new AbortController().signal)
    const end = batches.next()
    await deps.db.session.delete({ where: { id: writer.sessionId } })
    expect(await end).toEqual({ done: true, value: 'session_deleted' })
  })
})

describe('a record that cannot be read for a while', () => {
  it.each([1, 2])('delays a reader without losing events: query %i fails', async (failing) => {
    const { writer, write } = await createTurn()
    await write(...Array.from({ length: 6 }, (_, index) => `${index} `))
    let queries = 0
    const db = new Proxy(deps.db, {
      get: (target, name) =>
        name === '$queryRaw'
          ? (...given: Parameters<typeof deps.db.$queryRaw>) => {
              if (++queries === failing) return Promise.reject(new Error('timeout exceeded when trying to connect'))
              return target.$queryRaw(...given)
            }
          : Reflect.get(target, name),
    })
    // Starts in the middle of the message. The first query reads the page, the second the text before it.
    const reader = startFollowing(writer, 5, () => {}, { ...deps, db })
    const events = await reader.until(9)
    await reader.stop()
    expect(queries).toBeGreaterThan(failing)
    expect(events.map(({ sequence }) => sequence)).toEqual([6, 7, 8, 9])
    expect(events.at(-1).data.accumulated).toBe('0 1 2 3 4 5 ')
  })
})
