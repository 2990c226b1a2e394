import { addOwnOrganization, FULL_MODE, registerUser } from '../support/auth.ts'
import { append, createAnswer, createOpenTurn } from '../support/by-hand.ts'
import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  listEvents,
  modelId,
  textMessage,
  unknownId,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { startService, type TestService, withService } from '../support/service.ts'
import { type Frame, openStream } from '../support/stream.ts'

let service: TestService
let id: string
let all: Json[]
beforeAll(async () => {
  service = await startService()
  id = await createSession(service.url)
  await post(id)
  all = await waitUntilIdle(service.url, id)
})
afterAll(() => service.stop())

const post = (session: string, text = 'Hello') =>
  call(service.url, 'POST', `/v1/sessions/${session}/messages`, textMessage(text))
const open = (session: string, query = '', headers: Record<string, string> = {}) =>
  openStream(service.url, `/v1/sessions/${session}/sse${query}`, { headers })
const ids = (events: Json[]): string[] => events.map((event) => event.id)

/** Returns the status of an answer that may be an endless stream. */
async function statusOf(url: string, path: string, headers: Record<string, string> = {}): Promise<number> {
  const { status, close } = await openStream(url, path, { headers })
  close()
  return status
}

/** Returns the events that a stream replays, up to the last of the record. */
async function replay(query: string, headers: Record<string, string> = {}): Promise<Json[]> {
  const stream = await open(id, query, headers)
  await stream.until((frame) => frame.id === all.at(-1).id)
  stream.close()
  return stream.events()
}

describe('a stream', () => {
  it('is not compressed, and has headers that keep proxies from holding it back', async () => {
    const stream = await open(id, '', { 'Accept-Encoding': 'gzip, br' })
    expect(await stream.until(() => true)).toMatchObject({ event: 'connected' })
    stream.close()
    expect(stream.status).toBe(200)
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-request-id': expect.stringMatching(/./),
    })
    expect(stream.headers).not.toHaveProperty('content-encoding')
  })

  it('begins with connected, which has no id', async () => {
    const stream = await open(await createSession(service.url))
    const first = await stream.until(() => true)
    stream.close()
    expect(first).toEqual({ event: 'connected', data: { status: 'connected' }, retry: 100 })
  })

  it('has event, id, data and retry in every frame of an event, and the data is the event of the list', async () => {
    const stream = await open(id)
    await stream.until((frame) => frame.id === all.at(-1).id)
    stream.close()
    const frames = stream.frames.slice(1)
    expect(frames).toHaveLength(all.length)
    for (const [index, frame] of frames.entries()) {
      const event = all[index]
      const expected: Frame = { event: event.type, id: event.id, data: event, retry: expect.any(Number) as never }
      expect(frame).toEqual(expected)
      expect(frame.retry).toBeGreaterThanOrEqual(100)
      expect(frame.retry).toBeLessThanOrEqual(500)
    }
  })

  it('replays what there is and then goes on live', async () => {
    const session = await createScriptedSession(service.url, [
      { text: 'First.' },
      { text: 'a b c d', tokens_per_second: 20 },
    ])
    await post(session)
    const before = await waitUntilIdle(service.url, session)
    const stream = await open(session)
    await stream.until((frame) => frame.id === before.at(-1).id)
    await post(session)
    const after = await waitUntilIdle(service.url, session)
    await stream.until((frame) => frame.id === after.at(-1).id)
    stream.close()
    expect(after.length).toBeGreaterThan(before.length)
    expect(stream.events()).toEqual(after)
  })

  it('gives a retry delay that grows while nothing happens', async () => {
    const { id: quiet, writer } = await createOpenTurn(service.platform.deps)
    const stream = await open(quiet)
    await stream.until((frame) => frame.id !== undefined)
    const hints: number[] = []
    let now = performance.now()
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now)
    try {
      for (const idleMs of [0, 999, 1000, 1999, 2000, 3999, 4000, 5000, 0]) {
        now += idleMs
        const [event] = await append(service.platform.deps, writer, [createAnswer().delta('word ')])
        hints.push((await stream.until((frame) => frame.id === event?.id)).retry ?? 0)
      }
    } finally {
      clock.mockRestore()
      stream.close()
    }
    // The first hint depends on how much time passed before it.
    expect(hints.slice(1)).toEqual([100, 200, 200, 400, 400, 500, 500, 100])
  })

  it('is the same for all clients, whenever they connected', async () => {
    const session = await createSession(service.url, {}, { model_id: await modelId(service.url, 'llmsim-latency') })
    const early = await open(session)
    await post(session)
    await early.until((frame) => frame.event === 'output.message.delta')
    const late = await open(session)
    const streams = [early, late]
    await Promise.all(streams.map((stream) => stream.until((frame) => frame.event === 'session.idled')))
    const events = await listEvents(service.url, session)
    for (const stream of streams) {
      stream.close()
      expect(stream.events()).toEqual(events)
    }
  })

  it('continues after since_id, or after Last-Event-ID if that is absent', async () => {
    expect(ids(await replay(`?since_id=${all[3].id}`))).toEqual(ids(all.slice(4)))
    expect(ids(await replay('', { 'Last-Event-ID': all[5].id }))).toEqual(ids(all.slice(6)))
    expect(ids(await replay(`?since_id=${all[3].id}`, { 'Last-Event-ID': all[5].id }))).toEqual(ids(all.slice(4)))
    expect(ids(await replay('', { 'Last-Event-ID': '' }))).toEqual(ids(all))
  })

  it('has the requested types without the excluded ones, replayed and live', async () => {
    const query = '?types=input.message&types=turn.started&types=session.idled&exclude=turn.started'
    const session = await createSession(service.url)
    await post(session)
    const before = await waitUntilIdle(service.url, session)
    const stream = await open(session, query)
    await stream.until((frame) => frame.id === before.at(-1).id)
    await post(session)
    const events = await waitFor(async () => {
      const now = await waitUntilIdle(service.url, session)
      return now.length > before.length && now
    }, 'the second turn')
    await stream.until((frame) => frame.id === events.at(-1).id)
    stream.close()
    expect(stream.events()).toEqual(events.filter(({ type }) => type === 'input.message' || type === 'session.idled'))
  })

  it.each([
    ['types=nonsense', {}, /^types.*: must be an event type, not "nonsense"/],
    ['since_id=event_1', {}, /^since_id: must be event_/],
    [`since_id=${unknownId('event')}`, {}, /^since_id: is not the id of an event of this session/],
    ['', { 'Last-Event-ID': 'event_1' }, /must be event_/],
  ])('is refused as JSON for an invalid request: ?%s', async (query, headers, sentence) => {
    const answer = await call(service.url, 'GET', `/v1/sessions/${id}/sse?${query}`, undefined, headers)
    expectError(answer, 400, sentence)
  })

  it('is not found for a session that is not there', async () => {
    expectError(await call(service.url, 'GET', `/v1/sessions/${unknownId('session')}/sse`), 404, 'Session not found')
    expectError(await call(service.url, 'GET', '/v1/sessions/session_1/sse'), 400, /^session_id: /)
  })

  it('is one of at most twelve for a session, and a closed one makes room', async () => {
    const session = await createSession(service.url)
    await waitFor(async () => service.api.openStreams() === 0, 'the streams of other tests to be closed')
    const streams = await Promise.all(Array.from({ length: 12 }, () => open(session)))
    const path = `/v1/sessions/${session}/sse`
    const refused = await call(service.url, 'GET', path)
    expectError(refused, 429, 'Too many open streams on this session')
    expect(refused.body.code).toBe('too_many_streams')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    const elsewhere = await open(await createSession(service.url))
    expect(elsewhere.status).toBe(200)
    elsewhere.close()

    streams[0]?.close()
    await waitFor(async () => service.api.openStreams() === 11, 'the closed streams to be noticed')
    const again = await open(session)
    expect(again.status).toBe(200)
    expect(await statusOf(service.url, path)).toBe(429)
    for (const stream of [...streams, again]) stream.close()
    await waitFor(async () => service.api.openStreams() === 0, 'all streams to be closed')
  })
})

describe('streams of a process', () => {
  it('are limited, and each that is closed makes room for another', async () => {
    await withService({ worker: false, sse: { maxStreams: 3 } }, async ({ url, api }) => {
      const path = async () => `/v1/sessions/${await createSession(url)}/sse`
      const streams = [await openStream(url, await path()), await openStream(url, await path())]
      streams.push(await openStream(url, '/v1/durable/sse'))
      expect(streams.map(({ status }) => status)).toEqual([200, 200, 200])
      for (const refused of ['/v1/durable/sse', await path()]) expect(await statusOf(url, refused)).toBe(429)
      streams[0]?.close()
      await waitFor(async () => api.openStreams() === 2, 'the closed stream to be noticed')
      streams.push(await openStream(url, await path()))
      expect(streams.at(-1)?.status).toBe(200)
      expect(await statusOf(url, await path())).toBe(429)
      for (const stream of streams) stream.close()
    })
  })
})

describe('streams of an owner', () => {
  it('are counted over all organizations, and the newest ends when a full process gets another owner', async () => {
    const sse = { maxStreams: 4, maxStreamsPerOrganization: 3 }
    await withService({ worker: false, environment: FULL_MODE, sse }, async ({ url }) => {
      const user = await registerUser(url)
      const others = user.headers
      const [first, second] = [await addOwnOrganization(url, user), await addOwnOrganization(url, user, 'Second')]
      const path = async (headers: Record<string, string>) =>
        `/v1/sessions/${await createSession(url, undefined, {}, headers)}/sse`
      const enter = async (headers: Record<string, string>) => openStream(url, await path(headers), { headers })
      const streams = [await enter(first.headers), await enter(first.headers), await enter(second.headers)]
      const refused = await call(url, 'GET', await path(second.headers), undefined, second.headers)
      expectError(refused, 429, 'Too many open streams in the organizations of this owner')
      streams.push(await enter(others), await enter(others))
      expect(streams.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
      const { data } = (await streams[2]?.until(({ event }) => event === 'disconnecting')) ?? {}
      expect(data).toMatchObject({ reason: 'connection_cycle' })
      for (const headers of [others, second.headers])
        expect(await statusOf(url, await path(headers), headers)).toBe(429)
      for (const stream of streams) stream.close()
    })
  })
})

describe('streams of an organization', () => {
  it('have a limit of their own, and each that is closed makes room for another', async () => {
    const environment = FULL_MODE
    await withService({ worker: false, environment, sse: { maxStreamsPerOrganization: 3 } }, async ({ url, api }) => {
      const user = await registerUser(url)
      const { headers } = await addOwnOrganization(url, user)
      const path = async (headers: Record<string, string>) =>
        `/v1/sessions/${await createSession(url, undefined, {}, headers)}/sse`
      const enter = async () => openStream(url, await path(headers), { headers })
      const expectRefusal = async () => expect(await statusOf(url, await path(headers), headers)).toBe(429)
      const streams = [await enter(), await enter(), await enter()]
      expect(streams.map(({ status }) => status)).toEqual([200, 200, 200])
      await expectRefusal()
      streams[0]?.close()
      await waitFor(async () => api.openStreams() === 2, 'the closed stream to be noticed')
      streams.push(await enter())
      expect(streams.at(-1)?.status).toBe(200)
      await expectRefusal()
      const elsewhere = await openStream(url, await path(user.headers), { headers: user.headers })
      expect(elsewhere.status).toBe(200)
      for (const stream of [...streams, elsewhere]) stream.close()
    })
  })
})
