import { Event, eventData, eventTypes } from '../../contract/events.ts'
import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  listEvents,
  textMessage,
  unknownId,
  waitUntilIdle,
} from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
let id: string
let all: Json[]
beforeAll(async () => {
  api = await newOrganization()
  id = await createSession(api)
  for (const text of ['one', 'two']) await post(id, text)
  all = await waitUntilIdle(api, id)
})

const post = (session: string, text: string) =>
  call(api, 'POST', `/v1/sessions/${session}/messages?wait=60`, textMessage(text))
const get = (session: string, query = '') => call(api, 'GET', `/v1/sessions/${session}/events${query}`)
const list = (query: string) => listEvents(api, id, query)
const repeated = (key: string, values: string[]) => values.map((value) => `${key}=${value}`).join('&')

/** Adds deltas to the record, as a very long answer would. */
async function addDeltas(session: string, count: number): Promise<void> {
  const uuid = session.replace('session_', '')
  const added = `
    INSERT INTO events (session_id, sequence, type, ts, turn_id, step, exec_id, data)
    SELECT session_id, last_sequence + number, type, ts, turn_id, step, exec_id, '{"delta":"x"}'
    FROM sessions JOIN events ON session_id = id, generate_series(1, $2::int) number
    WHERE id = $1::uuid AND type = 'output.message.delta'`
  await api.query(added, [uuid, count])
  await api.query('UPDATE sessions SET last_sequence = last_sequence + $2::int WHERE id = $1::uuid', [uuid, count])
}

describe('the list of events', () => {
  it('is ascending, without a gap, and is what the contract says of each type', async () => {
    expect(all.map(({ sequence }) => sequence)).toEqual(all.map((_, index) => index + 1))
    for (const event of all) {
      expect(Event.safeParse(event).error).toBeUndefined()
      expect(eventData[event.type as keyof typeof eventData].parse(event.data)).toEqual(event.data)
      expect(event.session_id).toBe(id)
      expect(event.ts).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(event.id).toMatch(/^event_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/)
    }
    expect(new Set(all.map((event) => event.id)).size).toBe(all.length)
    expect((await get(id)).headers.get('content-type')).toMatch(/^application\/json/)
  })

  it('is empty in a session where nothing has happened', async () => {
    expect(await listEvents(api, await createSession(api))).toEqual([])
  })

  it('goes on after any of its events', async () => {
    for (const [index, event] of all.entries()) {
      expect(await list(`?since_id=${event.id}`)).toEqual(all.slice(index + 1))
    }
  })

  it('goes on after an event that is no longer kept', async () => {
    const session = await createScriptedSession(api, [{ text: 'one two three' }])
    await post(session, 'x')
    const events = await listEvents(api, session)
    const removed = events.findIndex(({ type }) => type === 'output.message.delta')
    const removal = "DELETE FROM events WHERE session_id = $1::uuid AND type = 'output.message.delta'"
    await api.query(removal, [session.replace('session_', '')])
    expect(await listEvents(api, session, `?since_id=${events[removed].id}`)).toEqual(events.slice(removed + 1))
  })

  it('has no more events than the limit', async () => {
    expect(await list('?limit=1')).toEqual(all.slice(0, 1))
    expect(await list(`?limit=3&since_id=${all[4].id}`)).toEqual(all.slice(5, 8))
    expect(await list('?limit=1000')).toEqual(all)
  })

  it('has everything without a limit and a thousand at most with one', async () => {
    const session = await createSession(api)
    await post(session, 'x')
    await waitUntilIdle(api, session)
    await addDeltas(session, 1500)
    const events = await listEvents(api, session)
    expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 1512 }, (_, index) => index + 1))
    expect(events.at(-1).data.accumulated).toMatch(/x{1500}$/)
    expect(await listEvents(api, session, '?limit=1000000')).toEqual(events.slice(0, 1000))
    expect(await listEvents(api, session, `?limit=600&since_id=${events[99].id}`)).toEqual(events.slice(100, 700))
    expect(await listEvents(api, session, '?limit=600&types=output.message.delta&exclude=turn.started')).toEqual(
      events.filter(({ type }) => type === 'output.message.delta').slice(0, 600),
    )
  })

  it('has the requested types without the excluded ones', async () => {
    const ofTypes = (...types: string[]) => all.filter((event) => types.includes(event.type))
    expect(await list('?types=turn.started')).toEqual(ofTypes('turn.started'))
    expect(await list('?types=turn.started&types=input.message')).toEqual(ofTypes('turn.started', 'input.message'))
    expect(await list('?types=turn.started&types=input.message&exclude=turn.started')).toEqual(ofTypes('input.message'))
    expect(await list('?types=turn.failed')).toEqual([])
    const others = await list('?exclude=output.message.delta&exclude=llm.generation')
    expect(others).toEqual(all.filter(({ type }) => type !== 'output.message.delta' && type !== 'llm.generation'))
  })

  it('takes each key 25 times and no more', async () => {
    const many = [...eventTypes, ...eventTypes].slice(0, 25)
    for (const key of ['types', 'exclude']) {
      expect((await get(id, `?${repeated(key, many)}`)).status).toBe(200)
      expectError(await get(id, `?${repeated(key, [...many, 'turn.started'])}`), 400, new RegExp(`^${key}: .*25 times`))
    }
  })

  it.each([
    ['types=nonsense', /^types.*: must be an event type, not "nonsense"/],
    ['exclude=turn.started&exclude=turn', /^exclude.*: must be an event type, not "turn"/],
    ['types=', /^types.*: must be an event type, not ""/],
    ['limit=0', /^limit: .*1 to 1000/],
    ['limit=-1', /^limit: /],
    ['limit=many', /^limit: /],
    ['since_id=event_1', /^since_id: must be event_ followed by 32/],
    ['since_id=', /^since_id: must be event_/],
    [`since_id=${unknownId('event')}`, /^since_id: is not the id of an event of this session/],
    [`since_id=${unknownId('message')}`, /^since_id: must be event_/],
    ['since_id=a&since_id=b', /^since_id: /],
  ])('is refused for ?%s', async (query, sentence) => {
    expectError(await get(id, `?${query}`), 400, sentence)
  })

  it('is refused for an event id in upper case and one of another session', async () => {
    expectError(await get(id, `?since_id=event_${all[0].id.slice(6).toUpperCase()}`), 400, /^since_id: must be/)
    const other = await createSession(api)
    await post(other, 'x')
    const [first] = await listEvents(api, other)
    expectError(await get(id, `?since_id=${first.id}`), 400, /^since_id: is not the id of an event of this session/)
  })

  it('is not found for a session that is not there', async () => {
    expectError(await get(unknownId('session')), 404, 'Session not found')
    expectError(await get(unknownId('session'), `?since_id=${all[0].id}`), 404, 'Session not found')
    expectError(await get('session_1'), 400, /^session_id: /)
  })
})
