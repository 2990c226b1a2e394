import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventTypes } from '../../contract/events.ts'
import { createEventIds } from '../../domain/events/log/event-id.ts'
import { append, createAnswer, createOpenTurn } from '../support/by-hand.ts'
import { leastLiveBytes } from '../support/heap.ts'
import { call, expectError, type Json, listEvents, unknownId, waitFor } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { head } from '../support/raw.ts'
import { startService, type TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'

const MEGABYTE = 1024 * 1024
const STALLED_MS = 2000
const GARBAGE = Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 7919) % 256))

let service: TestService
/** Session that others follow while one client misbehaves. */
let turn: Awaited<ReturnType<typeof createOpenTurn>>
let record: Json[]
beforeAll(async () => {
  // With its data unread, a client's disconnect is noticed only when writing to it. The long heartbeat prevents such
  // writes.
  service = await startService({ worker: false, sse: { heartbeatMs: 3_600_000 } })
  turn = await createOpenTurn(service.platform.deps)
  await append(
    service.platform.deps,
    turn.writer,
    Array.from({ length: 5 }, () => createAnswer().delta('word ')),
  )
  record = await listEvents(service.url, turn.id)
})
afterAll(() => service.stop())

const path = (query = '', id = turn.id) => `/v1/sessions/${id}/sse${query}`
const get = (query: string, headers: Record<string, string> = {}) =>
  call(service.url, 'GET', path(query), undefined, headers)
const untilNoStreams = () => waitFor(async () => service.api.openStreams() === 0, 'no stream to be open')
const lastId = () => String(record.at(-1)?.id)

/** Returns the id with the lowest bit of one hex digit flipped. */
const flipped = (id: string, at: number) => {
  const digit = Number.parseInt(id.charAt(at), 16) ^ 1
  return `${id.slice(0, at)}${digit.toString(16)}${id.slice(at + 1)}`
}

describe('an invalid cursor', () => {
  const forms = (): [string, string][] => [
    ['empty hex', 'event_'],
    ['a bare uuid', toUuid(lastId())],
    ['the hex alone', lastId().slice('event_'.length)],
    ['upper case', lastId().toUpperCase()],
    ['upper-case digits', `event_${lastId().slice(6).toUpperCase()}`],
    ['one digit less', lastId().slice(0, -1)],
    ['one digit more', `${lastId()}0`],
    ['no digits', `event_${'g'.repeat(32)}`],
    ['another kind of id', lastId().replace('event_', 'message_')],
    ['a number', '3'],
    ['null', 'null'],
    ['spaces around it', ` ${lastId()} `],
    ['a line break behind it', `${lastId()}\n`],
    ['letters of another script', `event_${'０'.repeat(32)}`],
    ['a statement', "event_' OR 1=1 --"],
    ['a long text', 'x'.repeat(5000)],
    ['the zero id', `event_${'0'.repeat(32)}`],
    ['an invented id', unknownId('event')],
    ...Array.from({ length: 32 }, (_, place): [string, string] => [
      `a genuine id but for digit ${place}`,
      flipped(lastId(), 'event_'.length + place),
    ]),
  ]

  it('is refused in every form, as JSON, by the stream and by the list', async () => {
    for (const [form, since] of forms()) {
      const query = `?since_id=${encodeURIComponent(since)}`
      const answers = [await get(query), await call(service.url, 'GET', `/v1/sessions/${turn.id}/events${query}`)]
      for (const { status, body } of answers) {
        expect({ form, status, error: body.error }).toEqual({
          form,
          status: 400,
          error: expect.stringMatching(/^since_id: (must be event_|is not the id of an event of this session)/),
        })
      }
    }
    expectError(await get('?since_id=a%00b'), 400)
    expectError(await get(`?since_id=${lastId()}&since_id=${lastId()}`), 400)
    await untilNoStreams()
  })

  it('is refused in Last-Event-ID too', async () => {
    for (const since of ['garbage', 'event_1', '\x80\xff', 'x'.repeat(5000), flipped(lastId(), 20), '{"id":1}']) {
      expectError(await get('', { 'Last-Event-ID': since }), 400, /^since_id: /)
    }
    await untilNoStreams()
  })

  it('is refused if it belongs to another session of the organization', async () => {
    const other = await createOpenTurn(service.platform.deps)
    const [event] = await listEvents(service.url, other.id)
    expectError(await get(`?since_id=${event.id}`), 400, 'since_id: is not the id of an event of this session')
    expectError(
      await get('', { 'Last-Event-ID': event.id }),
      400,
      'since_id: is not the id of an event of this session',
    )
  })

  it('is refused when it is ahead of the record', async () => {
    const { db } = service.platform.deps
    const { value } = await db.serviceKey.findUniqueOrThrow({ where: { name: 'event_ids' } })
    const ahead = createEventIds(value).encode(toUuid(turn.id), record.length + 1, Date.now())
    expectError(await get(`?since_id=${ahead}`), 400, 'since_id: is ahead of the record')
    expect(createEventIds(value).encode(toUuid(turn.id), record.length, Date.parse(record.at(-1)?.ts))).toBe(lastId())
  })
})

describe('a filter', () => {
  const repeat = (key: string, many: number) =>
    Array.from({ length: many }, (_, index) => `${key}=${eventTypes[index % eventTypes.length]}`).join('&')

  it.each(['types', 'exclude'])('takes 25 %s and refuses one more', async (key) => {
    expectError(await get(`?${repeat(key, 26)}`), 400, new RegExp(`^${key}`))
    const stream = await openStream(service.url, path(`?${repeat(key, 25)}`))
    expect(stream.status).toBe(200)
    stream.close()
    await untilNoStreams()
  })

  it.each(['types=nonsense', 'exclude=nonsense', 'types=', 'types=input.message,turn.started', 'types=INPUT.MESSAGE'])(
    'is refused with an unknown type: %s',
    async (query) => expectError(await get(`?${query}`), 400, /must be an event type/),
  )
})

describe('another method', () => {
  it.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s is 405', async (method) => {
    const answer = await call(service.url, method, path(), method === 'DELETE' ? undefined : {})
    expectError(answer, 405, `${method} is not allowed here`)
    expect(answer.headers.get('allow')).toMatch(/GET/)
  })

  it('HEAD has the headers of a stream, ends at once and leaves none open', async () => {
    for (const query of ['', `?since_id=${lastId()}`]) {
      const { status, headers, body } = await call(service.url, 'HEAD', path(query))
      expect({ status, body }).toEqual({ status: 200, body: '' })
      expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    }
    const refused = await openStream(service.url, path('?since_id=event_1'), { method: 'HEAD' })
    expect(refused.status).toBe(400)
    await untilNoStreams()
  })
})

describe('a session that is deleted while it is streamed', () => {
  it('ends its streams, and is not found after that', async () => {
    const gone = await createOpenTurn(service.platform.deps)
    const streams = await Promise.all(
      ['', '?types=turn.failed'].map((query) => openStream(service.url, path(query, gone.id))),
    )
    await streams[0]?.until((frame) => frame.event === 'input.message')
    await service.platform.deps.db.session.delete({ where: { id: toUuid(gone.id) } })
    for (const stream of streams) {
      await stream.ended
      expect(stream.frames.at(-1)).toMatchObject({ event: 'disconnecting', data: { reason: 'session_deleted' } })
    }
    expectError(await call(service.url, 'GET', path('', gone.id)), 404, 'Session not found')
    await untilNoStreams()
  })
})

/**
 * Sends as fast as the server reads. Resolves when everything is sent, the connection is closed, or the server stalls.
 */
function send(socket: Socket, bytes: Uint8Array, times: number): Promise<void> {
  const sent = new Promise<void>((resolve) => {
    let left = times
    const more = () => {
      while (left-- > 0) if (!socket.write(bytes)) return void socket.once('drain', more)
      resolve()
    }
    socket.once('close', () => resolve())
    more()
  })
  return Promise.race([sent, sleep(STALLED_MS)])
}

/** Opens a raw TCP connection and collects what the server sends. */
function openRaw(): {
  socket: Socket
  heard: () => string
  until: (text: string) => Promise<unknown>
  closed: Promise<void>
} {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  let heard = ''
  socket.on('data', (chunk) => {
    heard = (heard + chunk.toString('latin1')).slice(-MEGABYTE)
  })
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  return {
    socket,
    heard: () => heard,
    until: (text) => waitFor(async () => heard.includes(text), `${text} to be told`),
    closed,
  }
}

const streamHead = () => head('GET', path(`?since_id=${lastId()}`), { Connection: 'keep-alive' })

describe('a client that sends garbage', () => {
  let others: OpenStream[]
  let other: typeof turn
  beforeEach(async () => {
    other = await createOpenTurn(service.platform.deps)
    others = await Promise.all([
      openStream(service.url, path('', other.id)),
      openStream(service.url, path('', other.id)),
    ])
  })

  /** Expects that the server still works, other clients noticed nothing, and nothing is left of the client. */
  async function expectUnharmed(): Promise<void> {
    await append(service.platform.deps, other.writer, [createAnswer().delta('still here')])
    const expected = await listEvents(service.url, other.id)
    for (const stream of others) {
      await stream.until((frame) => frame.id === expected.at(-1).id)
      expect(stream.events()).toEqual(expected)
    }
    await waitFor(async () => service.api.openStreams() === others.length, 'only the streams of others to be open')
    for (const stream of others) stream.close()
    await untilNoStreams()
  }

  it('before its request gets an error and is cut off', async () => {
    const { socket, heard, closed } = openRaw()
    socket.write(Buffer.concat([GARBAGE, Buffer.from(streamHead())]))
    await closed
    expect(heard()).toMatch(/^HTTP\/1\.1 400 /)
    await expectUnharmed()
  })

  it('instead of the rest of its request head is cut off', async () => {
    const { socket, heard, closed } = openRaw()
    socket.write(streamHead().slice(0, -2))
    socket.write(GARBAGE)
    await closed
    expect(heard()).toMatch(/^HTTP\/1\.1 4/)
    await expectUnharmed()
  })

  it('during its stream loses at most that stream', async () => {
    const { socket, until } = openRaw()
    socket.write(streamHead())
    await until('event: connected')
    socket.write(GARBAGE)
    await append(service.platform.deps, turn.writer, [createAnswer().delta('more ')])
    record = await listEvents(service.url, turn.id)
    socket.end()
    await expectUnharmed()
  })

  it('of 10 MB during its stream costs no memory', async () => {
    const before = await leastLiveBytes()
    const { socket, until, closed } = openRaw()
    socket.write(streamHead())
    await until('event: connected')
    await send(socket, Buffer.alloc(64 * 1024, 'garbage'), 160)
    expect((await leastLiveBytes()) - before).toBeLessThan(5 * MEGABYTE)
    socket.destroy()
    await closed
    await expectUnharmed()
  })

  it('of 10 MB as the body of its request costs no memory', async () => {
    const before = await leastLiveBytes()
    const { socket, until, closed } = openRaw()
    socket.write(head('GET', path(), { Connection: 'keep-alive', 'Content-Length': 10 * MEGABYTE }))
    await until('event: connected')
    await send(socket, Buffer.alloc(64 * 1024, 'garbage'), 160)
    expect((await leastLiveBytes()) - before).toBeLessThan(5 * MEGABYTE)
    socket.destroy()
    await closed
    await expectUnharmed()
  })

  it.each([2, 20])('or %i more requests before the end of its stream harms nobody', async (many) => {
    const { socket, until, closed } = openRaw()
    const requests = Array.from({ length: many }, () => head('GET', '/health', { Connection: 'keep-alive' }))
    socket.write(streamHead() + requests.join('') + streamHead())
    await until('event: connected')
    await append(service.platform.deps, turn.writer, [createAnswer().delta('more ')])
    record = await listEvents(service.url, turn.id)
    await until(lastId())
    socket.destroy()
    await closed
    await expectUnharmed()
  })
})
