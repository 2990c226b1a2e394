import {
  call,
  createScriptedSession,
  expectError,
  type Json,
  listEvents,
  unknownId,
  waitUntilIdle,
} from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'
import { cancel, createBusySession, MUTE, post, turnIdOf } from '../support/turns.ts'

let api: Organization
/** Session with three turns that have ended, its events, and the second turn's id and events up to its end. */
let id: string
let all: Json[]
let turn: string
let second: Json[]
beforeAll(async () => {
  api = await newOrganization()
  id = await createScriptedSession(api, [{ text: 'one' }, { text: 'two words' }, { text: 'three' }])
  const turns: string[] = []
  for (const text of ['a', 'b', 'c']) turns.push((await post(api, id, text, {}, '?wait=60')).body.turn.id)
  all = await waitUntilIdle(api, id)
  turn = String(turns[1])
  second = upToEnd(all, turn)
})

const turnOf = ({ type, data, context }: Json): string =>
  type === 'input.message' ? data.message.id.replace('message_', 'turn_') : context.turn_id

/** Returns the events of a turn up to its end. */
const upToEnd = (events: Json[], turnId: string): Json[] =>
  events.filter((event) => turnOf(event) === turnId && event.type !== 'session.idled')

const open = (session: string, query: string, headers: Record<string, string> = {}): Promise<OpenStream> =>
  openStream(api, `/v1/sessions/${session}/sse?${query}`, { headers })

/** Returns the events of a stream that ends by itself. One without any is answered 204, which stops an EventSource. */
async function readToEnd(session: string, query: string, headers: Record<string, string> = {}): Promise<Json[]> {
  const { status } = await call(api, 'HEAD', `/v1/sessions/${session}/sse?${query}`, undefined, headers)
  if (status === 204) return []
  const stream = await open(session, query, headers)
  expect(await stream.ended).toBe('whole')
  expect(stream.frames.filter(({ event }) => event === 'disconnecting')).toEqual([])
  expect(stream.events()).not.toEqual([])
  return stream.events()
}

describe('the events of one turn', () => {
  it('are listed, and streamed to the end of a turn that has ended', async () => {
    expect(second.map(({ type }) => type)).toEqual(expect.arrayContaining(['input.message', 'turn.completed']))
    expect(await listEvents(api, id, `?turn_id=${turn}`)).toEqual(second)
    expect(await readToEnd(id, `turn_id=${turn}`)).toEqual(second)
  })

  it('go on after any event of the session', async () => {
    for (const event of all) {
      const rest = second.filter(({ sequence }) => sequence > event.sequence)
      const query = `turn_id=${turn}&since_id=${event.id}`
      expect(await listEvents(api, id, `?${query}`)).toEqual(rest)
      expect(await readToEnd(id, query)).toEqual(rest)
    }
    const [, last] = second
    expect(await readToEnd(id, `turn_id=${turn}`, { 'Last-Event-ID': last.id })).toEqual(second.slice(2))
  })

  it.each([
    ['types=output.message.delta', ['output.message.delta']],
    ['types=turn.completed&types=input.message', ['turn.completed', 'input.message']],
    ['types=turn.completed&exclude=turn.completed', []],
    ['types=session.idled', []],
  ])('match ?%s, and the stream ends all the same', async (filter, types) => {
    const wanted = second.filter(({ type }) => (types as string[]).includes(type))
    expect(await listEvents(api, id, `?turn_id=${turn}&${filter}`)).toEqual(wanted)
    expect(await readToEnd(id, `turn_id=${turn}&${filter}`)).toEqual(wanted)
  })

  it('do not include an excluded end, and the stream ends all the same', async () => {
    const wanted = second.filter(({ type }) => type !== 'turn.completed')
    expect(await listEvents(api, id, `?turn_id=${turn}&exclude=turn.completed`)).toEqual(wanted)
    expect(await readToEnd(id, `turn_id=${turn}&exclude=turn.completed`)).toEqual(wanted)
  })

  it('have a limit in a list', async () => {
    expect(await listEvents(api, id, `?turn_id=${turn}&limit=2`)).toEqual(second.slice(0, 2))
  })
})

describe('a stream of a turn that has not ended', () => {
  it('goes on live to its end, with all events or some', async () => {
    const session = await createScriptedSession(api, [{ text: 'a b c d', tokens_per_second: 20 }, { text: 'next' }])
    const turnId = turnIdOf(await post(api, session))
    const filters = ['', '&types=output.message.delta', '&exclude=turn.completed']
    const streams = filters.map((filter) => readToEnd(session, `turn_id=${turnId}${filter}`))
    await post(api, session)
    const [whole, deltas, rest] = await Promise.all(streams)
    const events = upToEnd(await waitUntilIdle(api, session), turnId)
    expect(whole).toEqual(events)
    expect(deltas).toEqual(events.filter(({ type }) => type === 'output.message.delta'))
    expect(rest).toEqual(events.slice(0, -1))
  })

  it('replays the message of a queued turn and waits', async () => {
    const { id: session, turns } = await createBusySession(api, 1)
    const queued = String(turns[1])
    const stream = await open(session, `turn_id=${queued}`)
    await stream.until(({ event }) => event === 'input.message')
    expect(stream.events()).toHaveLength(1)
    await cancel(api, session, { turn_id: queued })
    expect(await stream.ended).toBe('whole')
    expect(stream.events().map(({ type }) => type)).toEqual(['input.message', 'turn.cancelled'])
    await cancel(api, session)
  })

  it('ends when a failed turn ends', async () => {
    const session = await createScriptedSession(api, [{ error: { status: 400, message: 'I will not.' } }])
    const turnId = turnIdOf(await post(api, session))
    expect((await readToEnd(session, `turn_id=${turnId}`)).at(-1).type).toBe('turn.failed')
  })
})

describe('a turn that is not of the session', () => {
  it.each(['events', 'sse'])('is not found by /%s, and a malformed id is refused', async (path) => {
    const other = await createScriptedSession(api, [MUTE])
    const get = (session: string, turnId: string) =>
      call(api, 'GET', `/v1/sessions/${session}/${path}?turn_id=${turnId}`)
    expectError(await get(other, turn), 404, 'Turn not found')
    expectError(await get(id, unknownId('turn')), 404, 'Turn not found')
    expectError(await get(unknownId('session'), turn), 404, 'Session not found')
    for (const malformed of ['', 'turn_1', unknownId('message')])
      expectError(await get(id, malformed), 400, /^turn_id: /)
  })
})
