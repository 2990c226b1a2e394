import { createHash } from 'node:crypto'
import { runOnce } from '../../domain/kit/idempotency-keys.ts'
import { newUuid } from '../../domain/kit/ids.ts'
import { deleteExpired } from '../../domain/upkeep/retention.ts'
import { ANYBODY } from '../support/by-hand.ts'
import {
  type Answer,
  call,
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  modelId,
  textMessage,
  waitUntilIdle,
} from '../support/http.ts'
import { addOrganization, addUser } from '../support/organizations.ts'
import { formOf, PIXEL } from '../support/pictures.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { skillMd, skillZip } from '../support/zip.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const post = (path: string, body: unknown, key?: string, headers: object = {}): Promise<Answer> =>
  call(service.url, 'POST', path, body, { ...headers, ...(key === undefined ? {} : { 'Idempotency-Key': key }) })
const whole = ({ status, body }: Answer) => ({ status, body })

const db = () => service.platform.deps.db
const countAll = async () => [
  await db().agent.count(),
  await db().session.count(),
  await db().turn.count(),
  await db().invitation.count(),
  await db().llmProvider.count(),
  await db().llmModel.count(),
  await db().mcpServer.count(),
  await db().image.count(),
  await db().skill.count(),
  await db().sessionFile.count(),
  await db().sessionDatabase.count(),
  await db().schedule.count(),
]

/** Removes a stored answer, as if the process had died between creating something and storing the answer. */
const forgetAnswer = (key: string) => db().idempotencyKey.updateMany({ where: { key }, data: { answer: null } })

const agent = { name: 'Ada', system_prompt: 'Help.' }
const newAgentId = () => `agent_${newUuid().replaceAll('-', '')}`

const DEFAULT_ORGANIZATION = 'org_00000000000000000000000000000001'

/** Requests that create something: path, body and headers. */
const creating: [string, () => Promise<[string, unknown, object?]>][] = [
  ['an agent', async () => ['/v1/agents', agent]],
  [
    'an agent that is imported',
    async () => ['/v1/agents/import', '---\nname: Ada\n---\nHelp.', { 'Content-Type': 'text/markdown' }],
  ],
  [
    'an agent that is imported with its id',
    async () => ['/v1/agents/import', JSON.stringify({ ...agent, id: newAgentId(), tags: ['a'] })],
  ],
  ['a copy', async () => [`/v1/agents/${(await post('/v1/agents', agent)).body.id}/copy`, undefined]],
  ['an invitation', async () => [`/v1/orgs/${DEFAULT_ORGANIZATION}/invitations`, { role: 'member' }]],
  [
    'an LLM provider',
    async () => ['/v1/llm-providers', { name: 'A provider', provider_type: 'openai', api_key: 'sk-0123456789' }],
  ],
  [
    'a model',
    async () => {
      const { body } = await post('/v1/llm-providers', { name: 'A provider', provider_type: 'openai' })
      return [`/v1/llm-providers/${body.id}/models`, { model_id: 'gpt-x', display_name: 'X' }]
    },
  ],
  [
    'an MCP server',
    async () => ['/v1/mcp-servers', { name: newUuid(), url: 'https://mcp.example/', headers: { 'X-Key': 'one' } }],
  ],
  ['a file', async () => [`/v1/sessions/${await createSession(service.url)}/fs/a.txt`, { content: 'Hello' }]],
  ['a directory', async () => [`/v1/sessions/${await createSession(service.url)}/fs/a`, { is_directory: true }]],
  [
    'a copy of a file',
    async () => {
      const files = `/v1/sessions/${await createSession(service.url)}/fs`
      await post(`${files}/a`, { content: 'Hello' })
      return [`${files}/_/copy`, { src_path: '/a', dst_path: '/b' }]
    },
  ],
  ['a database', async () => [`/v1/sessions/${await createSession(service.url)}/databases`, { name: 'notes' }]],
  ['a skill', async () => ['/v1/skills', { skill_md: skillMd(`skill-${newUuid()}`) }]],
  ['a skill as an archive', async () => ['/v1/skills/upload', formOf(skillZip(`skill-${newUuid()}`))]],
  [
    'a schedule',
    async () => [
      '/v1/durable/schedules',
      { name: newUuid(), cron_expression: '0 0 1 1 *', target: { type: 'activity', name: 'noop' } },
    ],
  ],
  ['an image', async () => ['/v1/images', formOf(PIXEL)]],
  ['a session', async () => ['/v1/sessions', { title: 'New' }]],
  ['a session without a body', async () => ['/v1/sessions', undefined]],
  ['a fork', async () => [`/v1/sessions/${await createSession(service.url)}/fork`, {}]],
  ['a message', async () => [`/v1/sessions/${await createSession(service.url)}/messages`, textMessage('Hi')]],
  [
    'a message that wants to be alone',
    async () => [
      `/v1/sessions/${await createScriptedSession(service.url, [{ text: 'la '.repeat(500), tokens_per_second: 20 }])}/messages`,
      textMessage('Hi', { on_busy: 'reject' }),
    ],
  ],
  [
    'a message that interrupts',
    async () => [
      `/v1/sessions/${await createSession(service.url)}/messages`,
      textMessage('Hi', { on_busy: 'interrupt' }),
    ],
  ],
]

describe.each(creating)('a request for %s', (_, prepare) => {
  it('creates one resource and has one answer, however often and concurrently it is sent', async () => {
    const [path, body, headers] = await prepare()
    const before = await countAll()
    const key = newUuid()
    const answers = await Promise.all(Array.from({ length: 8 }, () => post(path, body, key, headers)))
    answers.push(await post(path, body, key, headers))
    expect(answers[0]?.status).toBe(201)
    for (const answer of answers) expect(whole(answer)).toEqual(whole(answers[0] as Answer))
    const created = (await countAll()).map((count, index) => count - (before[index] ?? 0))
    expect(created.reduce((sum, count) => sum + count)).toBe(1)
  })

  it('does not create again if its process died before answering', async () => {
    const [path, body, headers] = await prepare()
    const key = newUuid()
    const first = await post(path, body, key, headers)
    expect(first.status).toBe(201)
    const before = await countAll()
    await forgetAnswer(key)
    const second = await post(path, body, key, headers)
    expect([second.status, second.body.id]).toEqual([201, first.body.id])
    expect(await countAll()).toEqual(before)
  })
})

describe('a key', () => {
  it('does nothing for requests that have none', async () => {
    const ids = await Promise.all([1, 2].map(async () => (await post('/v1/sessions', {})).body.id))
    expect(new Set(ids).size).toBe(2)
  })

  it('repeats the first answer, even if the resource has changed or is gone', async () => {
    const key = newUuid()
    const first = await post('/v1/sessions', { title: 'Old' }, key)
    await call(service.url, 'PATCH', `/v1/sessions/${first.body.id}`, { title: 'New' })
    expect(whole(await post('/v1/sessions', { title: 'Old' }, key))).toEqual(whole(first))
    await call(service.url, 'DELETE', `/v1/sessions/${first.body.id}`)
    expect(whole(await post('/v1/sessions', { title: 'Old' }, key))).toEqual(whole(first))
  })

  it('does not undo changes made since an agent was replaced', async () => {
    const id = newAgentId()
    await post('/v1/agents', { ...agent, id })
    const key = newUuid()
    expect((await post('/v1/agents', { ...agent, id, name: 'Grace' }, key)).status).toBe(200)
    await forgetAnswer(key)
    await call(service.url, 'PATCH', `/v1/agents/${id}`, { name: 'Patched' })
    expect(await post('/v1/agents', { ...agent, id, name: 'Grace' }, key)).toMatchObject({
      status: 200,
      body: { name: 'Patched' },
    })
  })

  it('repeats the answer even if a referenced agent has gone', async () => {
    const { body: archived } = await post('/v1/agents', agent)
    const key = newUuid()
    const first = await post('/v1/sessions', { agent_id: archived.id }, key)
    await forgetAnswer(key)
    await call(service.url, 'DELETE', `/v1/agents/${archived.id}`)
    expect(whole(await post('/v1/sessions', { agent_id: archived.id }, key))).toEqual(whole(first))
  })

  it('is stored with a fingerprint of the request as it was sent', async () => {
    const id = await createSession(service.url)
    const body = textMessage('Hi', { controls: { model_id: await modelId(service.url, 'llmsim-echo') } })
    const key = newUuid()
    expect((await post(`/v1/sessions/${id}/messages`, body, key)).status).toBe(201)
    const request = ['POST', '/v1/sessions/{session_id}/messages', { session_id: id }, null, body]
    const { fingerprint } = await db().idempotencyKey.findFirstOrThrow({ where: { key } })
    expect(Buffer.from(fingerprint)).toEqual(createHash('sha256').update(JSON.stringify(request)).digest())
  })

  it('is the same for both spellings of a session id, and is deleted with the session', async () => {
    const id = await createSession(service.url)
    const key = newUuid()
    const first = await post(`/v1/sessions/${id}/messages`, textMessage('Hi'), key)
    const second = await post(`/v1/sessions/${id.replace('session_', 'sess_')}/messages`, textMessage('Hi'), key)
    expect(whole(second)).toEqual(whole(first))
    await call(service.url, 'DELETE', `/v1/sessions/${id}`)
    expect(await db().idempotencyKey.count({ where: { key } })).toBe(0)
    expectError(await post(`/v1/sessions/${id}/messages`, textMessage('Hi'), key), 404, 'Session not found')
  })

  it('is refused with another request', async () => {
    const key = newUuid()
    await post('/v1/sessions', { title: 'One' }, key)
    const sentence = /^Idempotency-Key: was already used for a different request; use a new one for each request$/
    expectError(await post('/v1/sessions', { title: 'Two' }, key), 409, sentence)
    expectError(await post('/v1/agents', agent, key), 409, sentence)
  })

  it('can be used again after a refused request', async () => {
    const key = newUuid()
    expectError(await post('/v1/agents', { ...agent, capabilities: [{ ref: 'flying' }] }, key), 400, /flying/)
    expect((await post('/v1/agents', agent, key)).status).toBe(201)
  })

  it('is a new one after it has expired', async () => {
    const key = newUuid()
    const first = await post('/v1/sessions', {}, key)
    const age = (hours: number) => db().$executeRaw`
      UPDATE idempotency_keys SET created_at = created_at - make_interval(hours => ${hours}) WHERE key = ${key}`
    await age(23)
    expect(whole(await post('/v1/sessions', {}, key))).toEqual(whole(first))
    await age(2)
    const second = await post('/v1/sessions', { title: 'Other' }, key)
    expect([second.status, second.body.id === first.body.id]).toEqual([201, false])
  })

  it('is deleted after it has expired', async () => {
    const [old, recent] = [newUuid(), newUuid()]
    for (const key of [old, recent]) await post('/v1/sessions', {}, key)
    await db().idempotencyKey.updateMany({
      where: { key: old },
      data: { createdAt: new Date(Date.now() - 25 * 3_600_000) },
    })
    await deleteExpired(service.platform.deps, new AbortController().signal)
    expect(await db().idempotencyKey.count({ where: { key: { in: [old, recent] } } })).toBe(1)
  })

  it('belongs to its user and organization', async () => {
    const actor = ANYBODY
    const scopes = [
      actor,
      { ...actor, userId: await addUser(db()) },
      { ...actor, organizationId: await addOrganization(db()) },
    ]
    const request = { key: newUuid(), request: ['POST', '/x', {}] }
    const run = (of: typeof actor) => runOnce(service.platform.deps, of, request, async ({ uuid }) => uuid)
    const uuids = await Promise.all(scopes.map(run))
    expect(new Set(uuids).size).toBe(3)
    expect(await Promise.all(scopes.map(run))).toEqual(uuids)
  })

  it.each(['k'.repeat(255), 'a b', '"quoted"'])('may be %j', async (key) => {
    expect((await post('/v1/sessions', {}, key)).status).toBe(201)
  })

  it.each(['k'.repeat(256), '', 'ü', 'a\tb'])('may not be %j', async (key) => {
    expectError(await post('/v1/sessions', {}, key), 400, /^Idempotency-Key: must be 1 to 255 ASCII characters/)
  })
})

describe('a message that is posted again with its key', () => {
  it('waits for the same turn, and streams the same events', async () => {
    const id = await createSession(service.url)
    const key = newUuid()
    const path = `/v1/sessions/${id}/messages`
    const waited = await post(`${path}?wait=60`, textMessage('Hello'), key)
    expect(waited).toMatchObject({ status: 200, body: { turn: { status: 'completed' } } })
    const again = await post(`${path}?wait=60`, textMessage('Hello'), key)
    expect(whole(again)).toEqual(whole(waited))
    const headers = { 'Idempotency-Key': key }
    const stream = await openStream(service.url, path, { method: 'POST', headers, body: textMessage('Hello') })
    expect(await stream.ended).toBe('whole')
    const events: Json[] = stream.events()
    expect([events[0].data.message.id, events.at(-1).type]).toEqual([waited.body.message.id, 'turn.completed'])
    await waitUntilIdle(service.url, id)
    expect((await call(service.url, 'GET', `/v1/sessions/${id}/turns`)).body.data).toHaveLength(1)
  })
})
