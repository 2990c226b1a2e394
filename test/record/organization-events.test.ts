import pg from 'pg'
import { deleteOldOrganizationEvents } from '../../domain/organization-events/retention.ts'
import { sleep } from '../../lib/sleep.ts'
import {
  call,
  createScriptedSession,
  expectError,
  type Json,
  listEvents,
  type Target,
  waitFor,
} from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { createRandom } from '../support/random.ts'
import { startService, type TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'
import { callsOf, cancel, clientTool, post, postAndAsk, submit } from '../support/turns.ts'

let service: TestService
let pool: pg.Pool
beforeAll(async () => {
  service = await startService()
  pool = new pg.Pool({ connectionString: service.config.DATABASE_URL, max: 8 })
})
afterAll(async () => {
  await pool.end()
  await service.stop()
})

/** Organization of one test. */
type Own = Exclude<Target, string> & { uuid: string }

async function newOrganization(): Promise<Own> {
  const { status, body } = await call(service.url, 'POST', '/v1/orgs', { name: 'Of a test' })
  expect(status).toBe(201)
  return { url: service.url, headers: { 'X-Org-Id': body.id }, uuid: toUuid(body.id) }
}

const NOTE = 'SELECT note_organization_event($1, $2, $3, NULL, NULL, $4)'
/** Notes an event in a transaction, which ends when the returned function is called. */
async function begin({ uuid }: Own, n: number, { type = 'tools.changed', agent = null as string | null } = {}) {
  const client = await pool.connect()
  await client.query('BEGIN')
  await client.query(NOTE, [uuid, type, agent, { n }])
  return async (how: 'COMMIT' | 'ROLLBACK' = 'COMMIT') => {
    await client.query(how)
    client.release()
  }
}
const note = async (...given: Parameters<typeof begin>): Promise<void> => (await begin(...given))()

const open = (own: Own, query = '', headers: Record<string, string> = {}) =>
  openStream(own, `/v1/events/sse${query}`, { headers })
const eventsOf = (stream: OpenStream): Json[] => stream.events().filter(({ type }) => type !== undefined)
const numbersOf = (stream: OpenStream): number[] => eventsOf(stream).map(({ data }) => data.n)
const isNumber = (n: number) => (frame: Json) => frame.data?.data?.n === n
const deleteOld = (olderThanMs = 0) =>
  deleteOldOrganizationEvents(service.platform.deps, olderThanMs, new AbortController().signal)

describe("an organization's stream", () => {
  it('has the ends and the waiting calls of turns in all sessions, with the turn', async () => {
    const own = await newOrganization()
    const steps = [{ tool_calls: callsOf('ask') }, { text: 'done' }]
    const id = await createScriptedSession(own, steps, { tools: [clientTool('ask')] })
    const stream = await open(own)
    const turn = await postAndAsk(own, id)
    const waiting = await stream.until(({ event }) => event === 'turn.waiting')
    expect(waiting).toMatchObject({
      id: '1',
      data: { id: '1', session_id: id, turn_id: turn.id, agent_id: expect.stringMatching(/^agent_/), data: { turn } },
    })
    await submit(own, id, [{ tool_call_id: 'ask', result: 1 }])
    const { data } = await stream.until(({ event }) => event === 'turn.completed')
    expect(data.data.turn).toMatchObject({ id: turn.id, status: 'completed', pending_tool_calls: [] })
    const other = await createScriptedSession(own, [{ error: { status: 400, message: 'no' } }])
    await post(own, other)
    await stream.until(({ event }) => event === 'turn.failed')
    stream.close()
    expect(eventsOf(stream).map(({ id: number, type }) => `${number} ${type}`)).toEqual([
      '1 turn.waiting',
      '2 turn.completed',
      '3 turn.failed',
    ])
  })

  it('begins with the present, at an id that connected has', async () => {
    const own = await newOrganization()
    await note(own, 1)
    const stream = await open(own)
    expect(await stream.until(() => true)).toMatchObject({ event: 'connected', id: '1' })
    stream.close()
    await note(own, 2)
    const resumed = await open(own, '', { 'Last-Event-ID': '1' })
    await resumed.until(isNumber(2))
    const whole = await open(own, '?since_id=0')
    await whole.until(isNumber(2))
    for (const one of [resumed, whole]) one.close()
    expect([numbersOf(resumed), numbersOf(whole)]).toEqual([[2], [1, 2]])
  })

  it('has an event that is committed after later ones, also for readers that have read these', async () => {
    const own = await newOrganization()
    const stream = await open(own)
    const commit = await begin(own, 1)
    await note(own, 2)
    const { id } = await stream.until(isNumber(2))
    await commit()
    const resumed = await open(own, `?since_id=${id}`)
    for (const one of [stream, resumed]) await one.until(isNumber(1))
    for (const one of [stream, resumed]) one.close()
    expect([numbersOf(stream), numbersOf(resumed)]).toEqual([[2, 1], [1]])
  })

  it('loses and doubles nothing over cut connections to two processes, while events are committed in any order', async () => {
    const own = await newOrganization()
    const peer = await service.startPeer()
    const random = createRandom(7)
    const [COUNT, WRITERS] = [120, 6]
    const committed = new Set<number>()
    const write = async (writer: number) => {
      for (let n = writer; n < COUNT; n += WRITERS) {
        const end = await begin(own, n)
        await sleep(random() * 60)
        const how = random() < 0.15 ? 'ROLLBACK' : 'COMMIT'
        await end(how)
        if (how === 'COMMIT') committed.add(n)
      }
    }
    const read: Json[] = []
    let isWritten = false
    const follow = async () => {
      const urls = [own.url, peer.url]
      for (
        let last = '0', turn = 0;
        !isWritten || new Set(read.map(({ data }) => data.n)).size < committed.size;
        turn++
      ) {
        const stream = await openStream({ ...own, url: urls[turn % 2] as string }, `/v1/events/sse?since_id=${last}`)
        await sleep(random() * 200)
        stream.close()
        read.push(...eventsOf(stream))
        last = read.at(-1)?.id ?? last
      }
    }
    const followed = follow()
    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)))
    isWritten = true
    await followed
    const numbers = read.map(({ data }) => data.n)
    expect(numbers.toSorted((a, b) => a - b)).toEqual([...committed].sort((a, b) => a - b))
    expect(read.map(({ id }) => Number(id))).toEqual(read.map((_, index) => index + 1))
  })

  it('can be limited to types and to an agent, and shows nothing of other organizations', async () => {
    const [own, other] = [await newOrganization(), await newOrganization()]
    const agent = toUuid(own.headers['X-Org-Id'] as string)
    const streams = [
      await open(own, '?types=budget.reached&types=execution.failed'),
      await open(own, `?agent_id=agent_${agent.replaceAll('-', '')}`),
      await open(own),
    ]
    await note(other, 0)
    await note(own, 1, { type: 'tools.changed', agent })
    await note(own, 2, { type: 'budget.reached' })
    await note(own, 3, { type: 'execution.failed', agent })
    await Promise.all(streams.map((stream) => stream.until(isNumber(3))))
    const replayed = await open(own, '?types=execution.failed&since_id=0')
    await replayed.until(isNumber(3))
    for (const stream of [...streams, replayed]) stream.close()
    expect([...streams, replayed].map(numbersOf)).toEqual([[2, 3], [1, 3], [1, 2, 3], [3]])
  })

  it('finds the events of a filter among very many others, with bounded statements', async () => {
    const own = await newOrganization()
    await pool.query(
      `INSERT INTO organization_events (organization_id, type, data)
       SELECT $1, CASE n WHEN 1 THEN 'budget.reached' WHEN 11000 THEN 'budget.reached' ELSE 'tools.changed' END,
         jsonb_build_object('n', n) FROM generate_series(1, 11000) n`,
      [own.uuid],
    )
    const stream = await open(own, '?types=budget.reached&since_id=0')
    await stream.until(isNumber(11_000))
    const present = await open(own)
    expect(await present.until(() => true)).toMatchObject({ event: 'connected', id: '11000' })
    for (const one of [stream, present]) one.close()
    expect(numbersOf(stream)).toEqual([1, 11_000])
  })

  it('tells a reader of events that retention has deleted', async () => {
    const own = await newOrganization()
    for (const n of [1, 2, 3]) await note(own, n)
    const stream = await open(own)
    const { id: last } = await stream.until(() => true)
    await note(own, 4)
    await deleteOld(3_600_000)
    await stream.until(isNumber(4))
    stream.close()
    // Nobody has read this one, and it has no number yet.
    await note(own, 5)
    await deleteOld()
    await note(own, 6)
    const resumed = await open(own, `?types=tools.changed&since_id=${last}`)
    await resumed.until(isNumber(6))
    const exact = await open(own, '?since_id=5')
    await exact.until(isNumber(6))
    for (const one of [resumed, exact]) one.close()
    expect(eventsOf(resumed)).toMatchObject([
      { type: 'gap', id: '5', data: { after: '3' } },
      { type: 'tools.changed', id: '6', data: { n: 6 } },
    ])
    expect(numbersOf(exact)).toEqual([6])
  })

  it('no longer has the events of a deleted session', async () => {
    const own = await newOrganization()
    const id = await createScriptedSession(own, [{ text: 'done' }])
    const stream = await open(own)
    await post(own, id)
    await stream.until(({ event }) => event === 'turn.completed')
    stream.close()
    await call(own, 'DELETE', `/v1/sessions/${id}`)
    await note(own, 1)
    const replayed = await open(own, '?since_id=0')
    await replayed.until(isNumber(1))
    replayed.close()
    expect(eventsOf(replayed).map(({ id: number }) => number)).toEqual(['2'])
  })

  it.each([
    ['?since_id=1', /^since_id: is ahead of the record/],
    ['?since_id=event_01', /^since_id: must be the id of an event of this stream/],
    ['?since_id=-1', /^since_id: must be/],
    [`?since_id=${'9'.repeat(30)}`, /^since_id: must be/],
    ['?types=turn.started', /types.*must be one of turn\.completed/],
    ['?agent_id=x', /^agent_id: must be agent_/],
  ])('refuses %s', async (query, sentence) => {
    const own = await newOrganization()
    expectError(await call(own, 'GET', `/v1/events/sse${query}`), 400, sentence)
  })
})

describe('a lease of a tool call', () => {
  const pathOf = (id: string, call_id = 'ask') => `/v1/sessions/${id}/tool-calls/${call_id}/lease`
  const lease = (own: Own, id: string, holder: string, call_id?: string) =>
    call(own, 'POST', pathOf(id, call_id), { holder })
  const newWaiting = async () => {
    const own = await newOrganization()
    const steps = [{ tool_calls: callsOf('ask', 'fetch') }, { text: 'done' }]
    const id = await createScriptedSession(own, steps, { tools: [clientTool('ask'), clientTool('fetch')] })
    const turn = await postAndAsk(own, id)
    return { own, id, turn }
  }
  const countLeases = (turnId: string) =>
    service.platform.deps.db.toolCallLease.count({ where: { turnId: toUuid(turnId) } })

  it('keeps others away until it expires or is released, and ends with the result', async () => {
    const { own, id, turn } = await newWaiting()
    const { limits } = service.platform.deps
    const first = await lease(own, id, 'a')
    expect(first).toMatchObject({ status: 200, body: { expires_in_ms: 30_000 } })
    const refused = await lease(own, id, 'b')
    expectError(refused, 409, /leased to another holder/)
    expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(0)
    expect((await lease(own, id, 'b', 'fetch')).status).toBe(200)
    const renewed = await lease(own, id, 'a')
    expect(renewed.body.expires_at >= first.body.expires_at).toBe(true)

    expect((await call(own, 'DELETE', `${pathOf(id)}?holder=b`)).status).toBe(204)
    expect((await lease(own, id, 'b')).status).toBe(409)
    expect((await call(own, 'DELETE', `${pathOf(id)}?holder=a`)).status).toBe(204)
    limits.toolCallLeaseMs = 1
    expect((await lease(own, id, 'b')).status).toBe(200)
    await waitFor(async () => (await lease(own, id, 'c')).status === 200, "b's lease to expire")
    limits.toolCallLeaseMs = 30_000
    // The first result counts, though its holder has lost the lease.
    expect((await submit(own, id, [{ tool_call_id: 'ask', result: 'of a' }])).status).toBe(200)
    expect(await countLeases(turn.id)).toBe(1)
    const late = await lease(own, id, 'c')
    expectError(late, 409, /not pending/)
    expect(late.body.code).toBe('not_waiting')
    await cancel(own, id)
    expect((await lease(own, id, 'b', 'fetch')).body.code).toBe('not_waiting')
    await call(own, 'DELETE', `/v1/sessions/${id}`)
    expect(await countLeases(turn.id)).toBe(0)
    expectError(await lease(own, id, 'b'), 404, 'Session not found')
  })

  it('is for one of many that ask at once', async () => {
    const { own, id } = await newWaiting()
    const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => lease(own, id, `holder ${index}`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(409)])
  })

  it('is refused for an approval and for a malformed holder', async () => {
    const own = await newOrganization()
    const tool = {
      type: 'builtin',
      name: 'get_current_time',
      description: 'x',
      parameters: {},
      policy: 'requires_approval',
    }
    const steps = [{ tool_calls: callsOf('get_current_time') }, { text: 'done' }]
    const id = await createScriptedSession(own, steps, { capabilities: [{ ref: 'current_time' }], tools: [tool] })
    await postAndAsk(own, id)
    expectError(await lease(own, id, 'a', 'get_current_time'), 400, /^tool_call_id: .*only a person answers/)
    expectError(await lease(own, id, ''), 400, /^holder: /)
    expectError(await lease(own, id, 'x'.repeat(200)), 400, /^holder: /)
    expect((await lease(own, id, 'a', 'no such call')).body.code).toBe('not_waiting')
    expect((await listEvents(own, id)).some(({ type }) => type === 'tool.call_requested')).toBe(true)
  })
})
