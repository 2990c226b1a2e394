import { workflowEnd } from '../support/cancelling.ts'
import {
  type Answer,
  call,
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  listEvents,
  unknownId,
  waitFor,
} from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { expectSoundRecord } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { withWorkflow } from '../support/temporal.ts'
import { clientTool, getTurn, MUTE, post, postAndAsk, turnIdOf } from '../support/turns.ts'

const ASK = [{ tool_calls: [{ name: 'ask_user', arguments: { question: 'Which?' } }] }, { text: 'Thanks.' }]
const REFUSED = { error: { status: 400, message: 'No.' } }

let api: Organization
/** Ids of sessions by their names. */
const sessions: Record<string, string> = {}
let agentId: string
let middle: string

/** One turn in each status, oldest first: found, failed, asking, running, queued and stopped. */
beforeAll(async () => {
  api = await newOrganization()
  const tools = [clientTool('ask_user')]
  sessions.found = await createScriptedSession(
    api,
    [{ text: 'The zebra is here.' }],
    {},
    {
      title: 'Quarterly invoice',
      tags: ['prod', 'blue'],
    },
  )
  sessions.failed = await createScriptedSession(api, [REFUSED], {}, { tags: ['prod'] })
  sessions.asking = await createScriptedSession(api, ASK, { tools })
  sessions.running = await createScriptedSession(api, [MUTE, { text: 'Later.' }])
  sessions.stopped = await createScriptedSession(api, [MUTE])
  agentId = (await call(api, 'GET', `/v1/sessions/${sessions.failed}`)).body.agent_id
  await post(api, sessions.found, 'Find my umbrella, please.', {}, '?wait=60')
  await post(api, sessions.failed, 'The umbrella is broken', {}, '?wait=60')
  middle = new Date().toISOString()
  await postAndAsk(api, sessions.asking, 'Which lamp?')
  await postActive(api, sessions.running, 'A slow river')
  await post(api, sessions.running, 'A queued river')
  await post(api, sessions.stopped, 'Stop this')
  await call(api, 'POST', `/v1/sessions/${sessions.stopped}/cancel`)
})

/** Posts a message and waits until its turn runs. Returns the id of the turn. */
async function postActive(target: Organization, id: string, text: string): Promise<string> {
  const turn = turnIdOf(await post(target, id, text))
  await waitFor(async () => (await getTurn(target, id, turn)).status === 'active', `${turn} to run`)
  return turn
}

const cancel = (target: Organization, body: object): Promise<Answer> => call(target, 'POST', '/v1/turns/cancel', body)
const list = (path: string, query: string): Promise<Answer> => call(api, 'GET', `/v1/${path}?${query}`)
const previews = ({ body }: Answer): string[] =>
  body.data.map((turn: Json) => turn.input_preview.split(' ').slice(0, 2).join(' '))
const namesOf = ({ body }: Answer): string[] =>
  body.data.map(({ id }: Json) => Object.keys(sessions).find((name) => sessions[name] === id))
const fill = (query: string): string =>
  query.replace('AGENT', agentId).replace('SESSION', String(sessions.running)).replace('MIDDLE', middle)

const ALL = ['Stop this', 'A queued', 'A slow', 'Which lamp?', 'The umbrella', 'Find my']
const USER = '00000000-0000-0000-0000-000000000001'

/** Filters, the turns that match, newest first, and the body with the same filters. */
const FILTERS: [query: string, turns: string[]][] = [
  ['', ALL],
  ['status=completed', ['Find my']],
  ['status=failed&status=cancelled', ['Stop this', 'The umbrella']],
  ['status=waiting', ['Which lamp?']],
  ['agent_id=AGENT', ['The umbrella']],
  [`agent_id=${unknownId('agent')}`, []],
  ['session_id=SESSION', ['A queued', 'A slow']],
  [`user_id=${USER}`, ALL],
  [`user_id=${USER}&agent_id=AGENT&status=completed`, []],
  ['error_code=llm_error', ['The umbrella']],
  ['error_code=llm_error&status=completed', []],
  ['from=MIDDLE', ALL.slice(0, 4)],
  ['to=MIDDLE', ALL.slice(4)],
  ['from=1970-01-01T00:00:00-02:00&to=9999-01-01T00:00:00Z', ALL],
  ['search=umbrella', ['The umbrella', 'Find my']],
  ['search=UMBRELLA -broken', ['Find my']],
  ['search="my umbrella"', ['Find my']],
  ['search=lamp or queued', ['A queued', 'Which lamp?']],
  ['search=zebra', []],
  ['search=river&status=queued', ['A queued']],
  ['stalled=true', []],
  ['stalled=true&status=failed', []],
  ['order=longest', ['Which lamp?', 'A slow']],
  ['order=longest&status=active', ['A slow']],
  ['order=longest&status=completed', []],
  ['limit=2&offset=1', ['A queued', 'A slow']],
]

describe('the turns of all sessions', () => {
  it.each(FILTERS)('are listed by filters: %s', async (query, expected) => {
    const answer = await list('turns', fill(query))
    expect([answer.status, previews(answer)]).toEqual([200, expected])
    expect(answer.body.next).toEqual(query.startsWith('limit') ? expect.any(String) : null)
  })

  it.each(FILTERS.filter(([query]) => !/order|limit/.test(query)))(
    'are counted by the same filters: %s',
    async (query, expected) => {
      const { status, body } = await list('turns/counts', fill(query))
      const { stalled, ...counts } = body
      expect([status, stalled]).toEqual([200, 0])
      expect(Object.values<number>(counts).reduce((sum, count) => sum + count)).toBe(expected.length)
      if (query === '')
        expect(counts).toEqual({ queued: 1, active: 1, waiting: 1, completed: 1, failed: 1, cancelled: 1 })
    },
  )

  it.each([
    ['newest', ALL],
    ['longest', ['Which lamp?', 'A slow']],
  ])('are read page by page: %s', async (order, expected) => {
    const seen: string[] = []
    let next: string | null = ''
    while (next !== null) {
      const page = await list('turns', `limit=1&order=${order}${next && `&after=${next}`}`)
      expect(page.body.data.length).toBe(1)
      seen.push(...previews(page))
      next = page.body.next
    }
    expect(seen).toEqual(expected)
  })

  it('have their agent, who posted, and the beginning of the message', async () => {
    const [turn] = (await list('turns', 'status=failed')).body.data
    expect(turn).toMatchObject({ agent_id: agentId, user_id: USER, api_key_id: null, stalled: false })
    expect(turn).toEqual(await getTurn(api, String(sessions.failed), turn.id))
  })

  const BAD: [path: string, query: string, sentence: RegExp][] = [
    ['turns', 'status=done', /^status/],
    ['turns', 'error_code=none', /^error_code/],
    ['turns', 'agent_id=1', /^agent_id/],
    ['turns', 'user_id=me', /^user_id/],
    ['turns', 'from=yesterday', /^from: must be a time/],
    ['turns', 'from=0000-01-01T00:00:00Z', /^from: must be between 1970/],
    ['turns', 'from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z', /^from: must be before to/],
    ['turns', 'after=x', /^after: must be the next/],
    [
      'turns',
      `after=${Buffer.from('longest.1.0193aaaa-bbbb-7ccc-8ddd-0123456789ab').toString('base64url')}`,
      /^after: .*order=newest/,
    ],
    ['turns', `after=${Buffer.from("newest.1.' OR 1=1 --").toString('base64url')}`, /^after: must be the next/],
    ['turns', 'offset=10001', /^offset: must be at most 10000; use after/],
    ['turns', 'search=%26 | ! () : *', /^search: must have a word/],
    ['turns', 'search=-umbrella', /^search: must have a word/],
    ['turns', 'search=a%00b', /./],
    ['turns', `search=${'x'.repeat(257)}`, /^search: must be at most 256/],
    ['turns/counts', 'search=-umbrella', /^search/],
    ['turns/counts', 'from=2030-01-02T00:00:00Z&to=2030-01-02T00:00:00Z', /^from/],
    ['sessions', 'search=!', /^search/],
    ['sessions', 'status=completed', /^status/],
    ['sessions', 'last_turn_status=active', /^last_turn_status/],
    ['sessions', 'status=idle&offset=10001', /^offset/],
    ['sessions', 'from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z', /^from/],
  ]
  it.each(BAD)('are refused for a wrong filter: %s %s', async (path, query, sentence) =>
    expectError(await list(path, query), 400, sentence),
  )
})

describe('the sessions', () => {
  it.each([
    ['status=idle', ['stopped', 'failed', 'found']],
    ['status=active', ['running']],
    ['status=waitingfortoolresults', ['asking']],
    ['status=started', []],
    ['last_turn_status=failed', ['failed']],
    ['last_turn_status=completed&status=idle', ['found']],
    ['tag=prod', ['failed', 'found']],
    ['tag=prod&tag=blue', ['found']],
    ['tag=red', []],
    ['to=MIDDLE&limit=2&offset=1', ['running', 'asking']],
    ['from=MIDDLE', []],
    ['agent_id=AGENT&status=idle', ['failed']],
    ['search=invoice', ['found']],
    ['search=zebra', ['found']],
    ['search=umbrella', ['failed', 'found']],
    ['search=umbrella&tag=blue', ['found']],
    ['search=in', []],
  ])('are listed by filters: %s', async (query, expected) => {
    const answer = await list('sessions', fill(query))
    expect([answer.status, namesOf(answer)]).toEqual([200, expected])
    expect(answer.body.total).toBe(query.includes('limit') ? 5 : expected.length)
  })

  it('are found by a title that changes, pinned ones first', async () => {
    const own = await newOrganization()
    const [first, second] = [await createSession(own, undefined, { title: 'An invoice' }), await createSession(own)]
    await call(own, 'PATCH', `/v1/sessions/${second}`, { title: 'A second receipt' })
    await call(own, 'PATCH', `/v1/sessions/${first}`, { title: 'A receipt' })
    const find = async (query: string) =>
      (await call(own, 'GET', `/v1/sessions?search=${query}`)).body.data.map(({ id }: Json) => id)
    expect(await find('receipt')).toEqual([second, first])
    expect(await find('invoice')).toEqual([])
    await call(own, 'PUT', `/v1/sessions/${first}/pin`)
    expect(await find('receipt')).toEqual([first, second])
    expect(await find('receipt&offset=1')).toEqual([second])
  })

  it('are not found by the texts of another organization', async () => {
    const other = await newOrganization()
    expect((await call(other, 'GET', '/v1/sessions?search=umbrella')).body).toMatchObject({ data: [], total: 0 })
    expect((await call(other, 'GET', '/v1/turns?search=umbrella')).body.data).toEqual([])
  })
})

describe('a turn without progress', () => {
  it('is marked, counted, found and cancelled', async () => {
    const own = await newOrganization()
    const id = await createScriptedSession(own, [MUTE])
    await postActive(own, id, 'Go')
    const age = (table: string, column: string) =>
      own.query(
        `UPDATE ${table} SET ${column} = now() - interval '16 minutes'
        WHERE session_id IN (SELECT id FROM sessions WHERE organization_id = $1)`,
        [own.uuid],
      )
    const read = async (query: string) => (await call(own, 'GET', `/v1/turns${query}`)).body
    const isStalled = async () => [
      (await read('?status=active')).data[0].stalled,
      (await read('/counts')).stalled,
      (await read('?stalled=true')).data.length,
    ]
    await age('turns', 'started_at')
    expect(await isStalled()).toEqual([false, 0, 0])
    await age('events', 'ts')
    expect(await isStalled()).toEqual([true, 1, 1])
    expect((await cancel(own, { stalled: true })).body).toEqual({ cancelled: 1, more: false })
    expect((await cancel(own, { stalled: true })).body).toEqual({ cancelled: 0, more: false })
  })
})

describe('cancelling turns by filters', () => {
  it.each([
    [{}, /at least one filter/],
    [{ all: false }, /at least one filter/],
    [{ agent_id: null }, /^agent_id: /],
    [{ all: true, status: ['active'] }, /^all: /],
    [{ status: [] }, /^status: /],
    [{ statuses: ['active'] }, /must not have the key "statuses"/],
    [{ search: 'a\0b' }, /./],
    [{ search: 'x'.repeat(1024 * 1024) }, /^search: /],
  ])('is refused without any, or with wrong ones: %#', async (body, sentence) => {
    expectError(await cancel(api, body), 400, sentence)
  })

  it('stops the matching ones, once, and starts what waited behind them', async () => {
    const own = await newOrganization()
    const id = await createScriptedSession(own, [MUTE, { text: 'Next.' }])
    const first = await postActive(own, id, 'An apricot')
    const second = turnIdOf(await post(own, id, 'A plum'))
    const stop = async (body: object) => (await cancel(own, { search: 'apricot', ...body })).body
    expect(await stop({ status: ['completed'] })).toEqual({ cancelled: 0, more: false })
    expect(await stop({ status: ['active', 'queued'] })).toEqual({ cancelled: 1, more: false })
    expect((await getTurn(own, id, first)).status).toBe('cancelled')
    await waitFor(async () => (await getTurn(own, id, second)).status === 'completed', 'the next turn')
    expect(await stop({})).toEqual({ cancelled: 0, more: false })
  })

  it('stops all of the organization, each with its events', async () => {
    const own = await newOrganization()
    const asking = await createScriptedSession(own, ASK, { tools: [clientTool('ask_user')] })
    const running = await createScriptedSession(own, [MUTE])
    await postAndAsk(own, asking)
    const turn = await postActive(own, running, 'Go')
    await post(own, running)
    expect((await cancel(own, { all: true })).body).toEqual({ cancelled: 3, more: false })
    const counts = (await call(own, 'GET', '/v1/turns/counts')).body
    expect(counts).toMatchObject({ queued: 0, active: 0, waiting: 0, cancelled: 3, stalled: 0 })
    for (const [id, types] of [
      [asking, ['tool.completed', 'turn.cancelled']],
      [running, ['turn.cancelled', 'session.idled']],
    ] as const) {
      const events = await listEvents(own, id)
      expectSoundRecord(events)
      expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining([...types]))
    }
    expect(await withWorkflow({}, turn, () => workflowEnd({}, turn))).toMatch(/^(CANCELLED|COMPLETED)$/)
    expect((await list('turns', 'status=waiting')).body.data.length).toBe(1)
  })

  it('leaves a session that is locked for long, and cancels the others', async () => {
    const own = await newOrganization()
    const ids: string[] = []
    for (let count = 0; count < 3; count++) ids.push(await createScriptedSession(own, [MUTE]))
    for (const id of ids) await postActive(own, id, 'Wait')
    const [, locked = ''] = ids
    const held = own.query('SELECT pg_sleep(6) FROM (SELECT FROM sessions WHERE id = $1 FOR UPDATE) AS s', [
      toUuid(locked),
    ])
    const isFree = async () =>
      (await own.query('SELECT FROM sessions WHERE id = $1 FOR UPDATE SKIP LOCKED', [toUuid(locked)])).length === 1
    await waitFor(async () => !(await isFree()), 'the lock')
    expect((await cancel(own, { all: true })).body).toEqual({ cancelled: 2, more: true })
    await held
    expect((await cancel(own, { all: true })).body).toEqual({ cancelled: 1, more: false })
  })
})
