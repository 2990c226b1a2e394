import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { endpoints } from '../../contract/index.ts'
import { verbOf } from '../../scripts/client-operations.ts'
import { createApiKey, registerUser } from '../support/auth.ts'
import { type ClientProject, installClient, programsIn } from '../support/client-package.ts'
import { type Exchange, type Fault, type FaultyProxy, startFaultyProxy } from '../support/faulty-proxy.ts'
import {
  addressOf,
  call,
  createScriptedSession,
  headersOf,
  type Json,
  listEvents,
  modelId,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { newOrganization, type Organization, sharedService } from '../support/shared/service.ts'
import { clientTool, getTurn, listTurns, post, waitForEvent } from '../support/turns.ts'

const TEXT = 'one two three four five six seven eight nine ten ü 🦊'
const STEP = { thinking: 'Let me think.', text: TEXT, tokens_per_second: 40 }
/** Step during which a test does something. */
const LONG_STEP = { text: 'a word '.repeat(60).trim(), tokens_per_second: 15 }

let project: ClientProject
let api: Organization
beforeAll(async () => {
  ;[project, api] = await Promise.all([installClient(), newOrganization()])
})
const proxies: FaultyProxy[] = []
afterAll(async () => {
  for (const proxy of proxies) await proxy.close()
  await project.remove()
})

/** Connects a client through a proxy with faults. */
async function connect(spoil: (exchange: Exchange, number: number) => Fault | undefined, options: object = {}) {
  const proxy = await startFaultyProxy(api, spoil)
  proxies.push(proxy)
  const { target } = proxy
  return {
    proxy,
    client: project.exports.createClient({ baseUrl: addressOf(target), headers: headersOf(target), ...options }),
  }
}

const none = () => undefined
const isStream = ({ path }: Exchange): boolean => path.includes('/sse')
const isPost = ({ method, path }: Exchange): boolean => method === 'POST' && path.endsWith('/messages')

/** Faults that take turns. They leave each third request alone, and let some events through. */
const FAULTS: (Fault | undefined)[] = [
  { after: 1500, how: 'cut' },
  { status: 429, retryAfter: 0 },
  { after: 2777, how: 'end' },
  { status: 503, retryAfter: 0 },
  { after: 0, how: 'cut' },
  { after: 3333, how: 'cut' },
  { status: 500 },
  { after: 9001, how: 'cut' },
  { after: -1, how: 'cut' },
  { after: 4096, how: 'end' },
]
const inTurn = (_exchange: Exchange, number: number) => FAULTS[number % FAULTS.length]

/** Reads events up to the end of a turn that is not followed by another. */
async function readUntilIdle(events: AsyncIterable<Json>): Promise<Json[]> {
  const read: Json[] = []
  for await (const event of events) {
    read.push(event)
    if (event.type === 'session.idled') break
  }
  return read
}

async function readParts(answer: AsyncIterable<Json>): Promise<Json[]> {
  const parts: Json[] = []
  for await (const part of answer) parts.push(part)
  return parts
}

const joined = (parts: Json[], step = 0): string =>
  parts.map((part) => (part.type === 'text' && part.step === step ? part.delta : '')).join('')

describe('the package', () => {
  it.concurrent("compiles with the programs of its README and of the service's", async () => {
    const [program = '', ofTools = '', served = ''] = await programsIn('client/README.md')
    const [first = ''] = await programsIn('README.md')
    expect(await project.compile(`declare const console: { log(text: string): void }\n${first}`)).toBe('')
    expect(await project.compile(`declare const console: { log(...what: unknown[]): void }\n${ofTools}`)).toBe('')
    expect(await project.compile(`declare const console: { log(...what: unknown[]): void }\n${served}`)).toBe('')
    const wrong = [
      'await client.sessions.get({ session_id: 1 })',
      'await client.sessions.get()',
      "await client.agents.create({ name: 'x' })",
      "session.events({ types: ['no.such.type'] })",
      'session.send(12)',
    ]
    const expectations = wrong.map((line) => `// @ts-expect-error\n${line}`).join('\n')
    expect(
      await project.compile(`declare const console: { log(...what: unknown[]): void }\n${program}\n${expectations}`),
    ).toBe('')
  })

  it.each([
    [{ baseUrl: 'service' }, /must begin with http/],
    [{ baseUrl: 'localhost:9300' }, /must begin with http/],
    [{ baseUrl: 'http://localhost:9300/v1/' }, /must not end with \/v1.*give http:\/\/localhost:9300$/],
    [{ baseUrl: 'http://127.0.0.1:1', headers: { 'X-Org-Id': '🦊' } }, /./],
  ])('refuses what no request can have: %j', (options, sentence) => {
    expect(() => project.exports.createClient(options)).toThrow(TypeError)
    expect(() => project.exports.createClient(options)).toThrow(sentence)
  })

  it('has each operation of the contract in the group of its tag', () => {
    const client = project.exports.createClient({ baseUrl: 'http://127.0.0.1:1' })
    for (const endpoint of endpoints) {
      const group = endpoint.tag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
      expect([endpoint.operationId, typeof client[group]?.[verbOf(endpoint)]]).toEqual([
        endpoint.operationId,
        'function',
      ])
    }
    for (const verb of ['list', 'create', 'get', 'put', 'update', 'archive']) expect(client.agents).toHaveProperty(verb)
  })

  it.concurrent('is one module without imports for pages', async () => {
    const module = await readFile('client/dist/browser.js', 'utf8')
    expect(module).not.toMatch(/^import |\bimport\(/m)
    expect(module).toMatch(/^export \{[^}]*\bcreateClient\b[^}]*\};$/m)
  })

  it.concurrent('types the arguments of tools by their schemas', async () => {
    const program = `
      import { defineTool, type FromSchema, type StandardSchema, toolDefinitions } from 'agent-session-client'
      const tools = {
        paint: defineTool({
          description: 'Paints.',
          parameters: {
            type: 'object',
            properties: { colour: { enum: ['red', 'blue'] }, coats: { type: 'integer' }, parts: { type: 'array', items: { type: 'string' } } },
            required: ['colour', 'parts'],
          },
          run: ({ colour, coats, parts }, call) => {
            const exact: [colour: 'red' | 'blue', coats: number | undefined, parts: string[]] = [colour, coats, parts]
            // @ts-expect-error
            colour.toFixed()
            return [exact, call.id]
          },
        }),
        look: defineTool({
          description: 'Looks.',
          parameters: {} as StandardSchema<{ where: URL }>,
          run: ({ where }) => where.href,
        }),
      }
      const optional: FromSchema<{ type: 'object'; properties: { a: { type: 'null' } } }> = {}
      await createClient({ baseUrl: 'http://x' }).session('').send('', { tools: { ...tools, plain: ({ id }: { id: string }) => [id, optional] } }).text()
      toolDefinitions(tools)
      import { createClient } from 'agent-session-client'`
    expect(await project.compile(program)).toBe('')
  })

  it.concurrent('checks arguments with the schema of a library', async () => {
    const { defineTool, toolDefinitions } = project.exports
    const parameters = z.object({ count: z.int().transform((count) => count + 1) })
    const tool = defineTool({ description: 'Counts.', parameters, run: ({ count }: Json) => count })
    expect(await tool.run({ count: 1 })).toBe(2)
    await expect(tool.run({ count: 'x' })).rejects.toThrow(/^count: /)
    expect(toolDefinitions({ tool })).toMatchObject([
      { type: 'client_side', name: 'tool', parameters: { type: 'object', required: ['count'] } },
    ])
  })
})

describe('events', () => {
  it.concurrent('match the list, each once and in order, through a proxy that cuts connections', async () => {
    const id = await createScriptedSession(api, [STEP])
    const { client, proxy } = await connect(inTurn)
    const both = [readUntilIdle(client.session(id).events()), readUntilIdle(client.session(id).events())]
    await post(api, id)
    const [first, second] = await Promise.all(both)
    const listed = await listEvents(api, id)
    expect(first).toEqual(listed)
    expect(second).toEqual(listed)
    expect(proxy.exchanges.length).toBeGreaterThan(FAULTS.length)
    await waitFor(async () => proxy.open === 0, 'all connections to be closed')
  })

  it.concurrent('can be limited to one turn, up to its end, and to types', async () => {
    const id = await createScriptedSession(api, [STEP, { text: 'second' }])
    for (const _ of [1, 2]) await post(api, id)
    const all = await waitUntilIdle(api, id)
    const [turn] = await listTurns(api, id)
    const { client } = await connect(none)
    const read = async (more: object) => {
      const events: Json[] = []
      for await (const event of client.session(id).events({ turn_id: turn.id, ...more })) events.push(event)
      return events
    }
    const expected = all.slice(0, 1 + all.findIndex(({ type }) => type === 'turn.completed'))
    const ofTurn = expected.filter(
      ({ context, data }) => context.turn_id === turn.id || data.message?.id === turn.input_message_id,
    )
    expect(await read({})).toEqual(ofTurn)
    expect(await read({ exclude: ['turn.completed'] })).toEqual(ofTurn.slice(0, -1))
    const started = ofTurn.filter(({ type }) => type === 'turn.started')
    expect(await read({ types: ['turn.started'] })).toEqual(started)
    expect(await read({ after: started[0].id })).toEqual(ofTurn.slice(1 + ofTurn.indexOf(started[0])))
    expect(await read({ after: all.at(-1).id })).toEqual([])
  })

  it.concurrent('of types and with fields that the client does not know come as they are', async () => {
    const id = await createScriptedSession(api, [{ text: 'x' }])
    await post(api, id)
    const listed = await waitUntilIdle(api, id)
    const unknown = { id: 'event_of_later', type: 'moon.rose', sequence: 0, data: { phase: 'full' }, more: [1] }
    const before = `event: moon.rose\nid: event_of_later\nfrobnicate: 1\ndata: ${JSON.stringify(unknown)}\n\n`
    const { client } = await connect((exchange) => (isStream(exchange) ? { before } : undefined))
    expect(await readUntilIdle(client.session(id).events())).toEqual([unknown, ...listed])
  })

  it.concurrent('end with the session, and with the signal', async () => {
    const id = await createScriptedSession(api, [{ text: 'x' }])
    const { client, proxy } = await connect(none)
    const ended = readUntilIdle(client.session(id).events())
    const leave = new AbortController()
    const left = readUntilIdle(client.session(id).events({ signal: leave.signal }))
    await waitFor(async () => proxy.open === 2, 'both connections')
    leave.abort()
    expect(await left).toEqual([])
    await client.sessions.delete({ session_id: id })
    expect(await ended).toEqual([])
    await expect(readUntilIdle(client.session(id).events())).rejects.toMatchObject({
      name: 'ApiError',
      status: 404,
      code: 'not_found',
    })
  })
})

describe('an answer', () => {
  it.concurrent('is whole, to one message, through a proxy that cuts', async () => {
    const { client, proxy } = await connect((exchange, number) => {
      // The service takes the first message without the client knowing it.
      if (isPost(exchange)) return { after: number === 0 ? -1 : 1800, how: 'cut' }
      return isStream(exchange) ? inTurn(exchange, number) : undefined
    })
    const id = await createScriptedSession(api, [STEP])
    const answer = client.session(id).send('Go')
    const parts = await readParts(answer)
    expect([await answer.text(), joined(parts), parts.at(-1).message.content]).toEqual([
      TEXT,
      TEXT,
      [{ type: 'text', text: TEXT }],
    ])
    expect(parts.filter(({ type }) => type === 'restarted')).toEqual([])
    const keys = proxy.exchanges.filter(isPost).map(({ headers }) => headers['idempotency-key'])
    expect([keys.length, new Set(keys).size]).toEqual([2, 1])
    const turns = await listTurns(api, id)
    expect(turns.map((turn) => turn.id)).toEqual([await answer.turnId])
    await waitFor(async () => proxy.open === 0, 'all connections to be closed')
  })

  it.concurrent('of a queued message has nothing of the turns before it', async () => {
    const id = await createScriptedSession(api, [LONG_STEP, { text: 'the second' }])
    const { client } = await connect((exchange) => (isPost(exchange) ? { after: 1600, how: 'cut' } : undefined))
    const answers = [client.session(id).send('Go')]
    await waitForEvent(api, id, 'turn.started')
    answers.push(client.session(id).send('Go on'))
    const refused = client.session(id).send('Go', { on_busy: 'reject' })
    await expect(refused.text()).rejects.toMatchObject({ name: 'ApiError', status: 409 })
    expect(await Promise.all(answers.map((answer) => answer.text()))).toEqual([LONG_STEP.text, 'the second'])
  })

  it.concurrent('comes in the order of the messages, though the first is refused once', async () => {
    const id = await createScriptedSession(api, [{ text: 'one' }, { text: 'two' }, { text: 'three' }])
    const { client } = await connect((_exchange, number) => (number === 0 ? { status: 503 } : undefined))
    const session = client.session(id)
    const answers = ['a', 'b', 'c'].map((text) => session.send(text))
    expect(await Promise.all(answers.map((answer) => answer.text()))).toEqual(['one', 'two', 'three'])
    const leave = new AbortController()
    const never = session.send('d', { signal: leave.signal })
    leave.abort()
    await expect(never.text()).rejects.toMatchObject({ name: 'AbortError' })
  })

  it.concurrent('says that a message begins anew', async () => {
    const error = { status: 503, message: 'overloaded', retry_after_ms: 20, times: 1, after_text: true }
    const id = await createScriptedSession(api, [{ ...STEP, error }])
    const { client } = await connect(none)
    const parts = await readParts(client.session(id).send('Go'))
    const restartedAt = parts.findIndex(({ type }) => type === 'restarted')
    expect(restartedAt).toBeGreaterThan(0)
    expect(joined(parts.slice(restartedAt))).toBe(TEXT)
  })

  it.concurrent('rejects with the error of its turn, or of the request', async () => {
    const error = { status: 400, message: 'no such thing' }
    const id = await createScriptedSession(api, [{ error }, LONG_STEP])
    const { client } = await connect(none)
    const failed = { name: 'TurnFailed', code: expect.any(String), message: expect.stringMatching(/./) }
    await expect(client.session(id).send('Go').text()).rejects.toMatchObject(failed)
    const cancelled = client.session(id).send('Go')
    await cancelled.turnId
    expect(await client.session(id).cancel(await cancelled.turnId)).toMatchObject({ status: 'cancelled' })
    await expect(readParts(cancelled)).rejects.toMatchObject({ name: 'TurnFailed', code: 'cancelled' })
    const refused = client.session(id).send([])
    await expect(refused.text()).rejects.toMatchObject({ name: 'ApiError', status: 400, message: /content/ })
  })

  it.concurrent('is left with the loop, and its turn goes on', async () => {
    const id = await createScriptedSession(api, [LONG_STEP])
    const { client, proxy } = await connect(none)
    const answer = client.session(id).send('Go')
    for await (const part of answer) if (part.type === 'text') break
    await waitFor(async () => proxy.open === 0, 'the connection to be closed')
    await expect(answer.text()).rejects.toMatchObject({ name: 'AbortError' })
    await waitUntilIdle(api, id)
    expect((await getTurn(api, id, await answer.turnId)).status).toBe('completed')
  })
})

describe('an answer that another process has begun', () => {
  const CALLS = ['one', 'two'].map((name) => ({ id: `call-${name}`, name, arguments: {} }))
  const agent = {
    capabilities: [{ ref: 'test_math' }],
    tools: [
      ...CALLS.map(({ name }) => clientTool(name)),
      { ...clientTool('multiply'), type: 'builtin', policy: 'requires_approval' },
    ],
  }
  const approval = { id: 'call-multiply', name: 'multiply', arguments: { a: 6, b: 7 } }
  const steps = [
    { thinking: 'Hm.', text: 'First.', tool_calls: [CALLS[0]] },
    { text: 'Second.', tool_calls: [CALLS[1], approval] },
    { text: 'done' },
  ]

  /** Sends a message, answers its first call, and dies while the second one runs. */
  async function die(id: string, options: object = {}): Promise<string> {
    const { client } = await connect(none)
    const dying = new AbortController()
    const never = () => new Promise((resolve) => void setTimeout(resolve, 0, dying.abort()))
    const answer = client
      .session(id)
      .send('Go', { tools: { one: () => 1, two: never }, signal: dying.signal, ...options })
    await expect(answer.text()).rejects.toMatchObject({ name: 'AbortError' })
    return answer.turnId
  }

  it.concurrent('is told from its beginning, and its pending calls are answered', async () => {
    const id = await createScriptedSession(api, steps, agent)
    const turnId = await die(id)
    const { client } = await connect(inTurn)
    const parts: Json[] = []
    const ran: string[] = []
    const answer = client.session(id).answer(turnId, {
      tools: { one: () => ran.push('one'), two: () => ran.push('two') },
      approve: ({ name }: Json) => ran.push(name) > 0,
      onPart: (part: Json) => parts.push(part),
    })
    expect(await answer.text()).toBe('done')
    expect(await answer.turnId).toBe(turnId)
    expect(ran.sort()).toEqual(['multiply', 'two'])
    expect([joined(parts), joined(parts, 1), joined(parts, 2)]).toEqual(['First.', 'Second.', 'done'])
    expect(parts.find(({ type }) => type === 'thinking')).toMatchObject({ step: 0, text: 'Hm.' })
    const ofTools = parts.filter(({ type }) => type === 'tool').map(({ step, name, status }) => [step, name, status])
    expect(ofTools).toEqual(
      expect.arrayContaining([
        [0, 'one', 'success'],
        [1, 'two', 'success'],
        [1, 'multiply', 'running'],
        [1, 'multiply', 'success'],
      ]),
    )
    expect(ofTools).toHaveLength(4)
    expect(parts.find(({ status }) => status === 'running')).toMatchObject({ arguments: { a: 6, b: 7 } })
    // A finished answer can be read again.
    expect(await client.session(id).answer(turnId).text()).toBe('done')
    const messages = await client.session(id).messages()
    expect(messages.map(({ role }: Json) => role).filter((role: string) => role !== 'tool_result')).toEqual([
      'user',
      'agent',
      'agent',
      'agent',
    ])
  })

  it.concurrent('goes on when the same message is sent with the same key', async () => {
    const id = await createScriptedSession(api, steps, agent)
    const turnId = await die(id, { idempotencyKey: 'stored before' })
    const { client } = await connect(none)
    const ran: string[] = []
    const tools = { one: () => ran.push('one'), two: () => ran.push('two') }
    const again = client.session(id).send('Go', { idempotencyKey: 'stored before', tools, approve: () => false })
    expect(again.idempotencyKey).toBe('stored before')
    expect([await again.text(), await again.turnId, ran]).toEqual(['done', turnId, ['two']])
    expect(await listTurns(api, id)).toHaveLength(1)
  })

  it.concurrent('has a key that is known before the message goes out', async () => {
    const id = await createScriptedSession(api, [{ text: 'x' }])
    const { client, proxy } = await connect(none)
    const { idempotencyKey, ...answer } = client.session(id).send('Go')
    expect([idempotencyKey, proxy.exchanges.length]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), 0])
    await answer.text()
    expect(proxy.exchanges.find(isPost)?.headers['idempotency-key']).toBe(idempotencyKey)
  })
})

describe('tools of the client', () => {
  const calls = ['ask', 'fail', 'large', 'round'].map((name) => ({ id: `call-${name}`, name, arguments: { of: name } }))
  const agent = {
    capabilities: [{ ref: 'test_math' }],
    tools: [
      ...calls.map(({ name }) => clientTool(name)),
      { ...clientTool('multiply'), type: 'builtin', policy: 'requires_approval' },
    ],
  }
  const approval = { id: 'call-multiply', name: 'multiply', arguments: { a: 6, b: 7 } }

  it.concurrent('run once for each call, in each step, through a proxy that cuts', async () => {
    // The model gives the second calls the ids of the first. A result whose answer was lost is sent again.
    const step = { text: 'Let me see.', tool_calls: [...calls, approval] }
    const steps = [step, { ...step, text: 'Again.' }, { text: TEXT }]
    const id = await createScriptedSession(api, steps, agent)
    const { client } = await connect((exchange, number) => {
      if (isPost(exchange)) return { after: 3000, how: 'cut' }
      if (isStream(exchange)) return number % 3 === 0 ? { after: 3333, how: 'cut' } : undefined
      // A result is taken, and the client does not get to know it.
      return number % 2 === 0 ? { after: -1, how: 'cut' } : undefined
    })
    const ran: string[] = []
    const tools = {
      ask: async (args: Json) => void ran.push(args.of),
      fail: () => {
        ran.push('fail')
        throw new Error('It is broken.')
      },
      round: () => {
        const round = { of: ran.push('round'), itself: {} }
        round.itself = round
        return round
      },
      large: () => 'x'.repeat(ran.push('large') + 200_000),
    }
    const approve = async (call: Json) => ran.push(call.name) > 0
    const answer = client.session(id).send('Go', { tools, approve })
    const parts = await readParts(answer)
    expect([await answer.text(), joined(parts), joined(parts, 1)]).toEqual([TEXT, 'Let me see.', 'Again.'])
    const names = ['ask', 'fail', 'large', 'multiply', 'round']
    expect(ran.sort()).toEqual(names.flatMap((name) => [name, name]))
    const events = await waitUntilIdle(api, id)
    const completed = events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data)
    const errors = completed.map(({ tool_name, error }) => [tool_name, error?.slice(0, 24) ?? null]).sort()
    const each = [
      ['ask', null],
      ['fail', 'It is broken.'],
      ['large', 'The result was refused: '],
      ['multiply', null],
      ['round', 'Converting circular stru'],
    ]
    expect(errors).toEqual(each.flatMap((one) => [one, one]))
  })

  it.concurrent('without a function are told, and wait', async () => {
    const id = await createScriptedSession(api, [{ tool_calls: [calls[0] ?? {}] }, { text: 'done' }], agent)
    const { client } = await connect(none)
    const answer = client.session(id).send('Go')
    for await (const part of answer) {
      if (part.type !== 'waiting') continue
      expect(part.calls).toEqual([{ ...calls[0], kind: 'client_tool' }])
      await client.turns.submitToolResults({ session_id: id, tool_results: [{ tool_call_id: 'call-ask', result: 1 }] })
    }
    expect(await answer.text()).toBe('done')
  })
})

describe('requests', () => {
  it.concurrent('create one session, however often they are repeated', async () => {
    const faults: Fault[] = [
      { status: 503, retryAfter: 0 },
      { after: -1, how: 'cut' },
      { after: 9, how: 'cut' },
      { after: 9, how: 'end' },
    ]
    const { client } = await connect((_exchange, number) => faults[number])
    const { id } = await client.sessions.create({ title: 'Mine' })
    const { data } = await client.sessions.list()
    expect(data.filter(({ title }: Json) => title === 'Mine').map((session: Json) => session.id)).toEqual([id])
  })

  it.concurrent('have numbers in their paths', async () => {
    const { client } = await connect(none)
    const { id } = await client.agents.create({ name: 'Numbered', system_prompt: 'Hello' })
    const found = await client.agents.getAgentVersion({ agent_id: id, version: 1 })
    expect(found).toMatchObject({ agent_id: id, version: 1 })
  })

  it.concurrent('fail with the sentence of the service, and what it says of the next one', async () => {
    const { client } = await connect(() => ({ status: 429, retryAfter: 7 }))
    const error = { name: 'ApiError', status: 429, message: 'Not now.', retryAfterMs: 7000, requestId: 'of-the-proxy' }
    await expect(client.agents.list()).rejects.toMatchObject(error)
  })

  it.concurrent('carry a token, which is asked for again once it is refused', async () => {
    const { url } = await sharedService('full')
    const user = await registerUser(url)
    const [revoked, good] = [await createApiKey(url, user.headers), await createApiKey(url, user.headers)]
    const direct = (token: unknown) => project.exports.createClient({ baseUrl: url, token })
    const { id } = await direct(good.key).sessions.create()
    await direct(user.accessToken).auth.revokeApiKey({ key_id: revoked.id })

    const asked: string[] = []
    const token = async () => [revoked.key, good.key][asked.push('') - 1] ?? good.key
    const leave = new AbortController()
    const session = direct(token).session(id)
    const read = readUntilIdle(session.events({ signal: leave.signal }))
    expect(await session.send('Hello').text()).toMatch(/./)
    expect((await read).at(-1)).toMatchObject({ type: 'session.idled' })

    for (const refused of [revoked.key, () => revoked.key]) {
      const ended = readUntilIdle(direct(refused).session(id).events())
      await expect(ended).rejects.toMatchObject({ name: 'ApiError', status: 401 })
      await expect(direct(refused).agents.list()).rejects.toMatchObject({ status: 401 })
    }
  })

  it.concurrent('of a stream whose credential ended carry the next token', async () => {
    const id = await createScriptedSession(api, [{ text: 'x' }])
    const before = 'event: disconnecting\ndata: {"reason":"credential_ended","retry_ms":1}\n\n'
    const tokens = ['first', 'second']
    const { client, proxy } = await connect((_exchange, number) => (number === 0 ? { before } : undefined), {
      token: () => tokens.shift() ?? 'none',
    })
    const read = readUntilIdle(client.session(id).events())
    await post(api, id)
    await read
    const sent = proxy.exchanges.map(({ headers }) => headers.authorization)
    expect(sent).toEqual(['Bearer first', 'Bearer second'])
  })
})

describe('a chat on the client', () => {
  it.concurrent('is what docs/building-a-chat.md shows', async () => {
    const program = (await programsIn('docs/building-a-chat.md')).join('\n')
    expect(await project.compile(program)).toBe('')
    const run = () => project.run(program.replaceAll('http://localhost:9300', addressOf(api)))
    await run()
    const written = await run()
    expect(written.trim().split('\n')).toEqual([
      ...['Then blue it is.', 'Then blue it is.', '2 calls of the model'],
      ...['user: Paint the door.', 'agent: Then blue it is.', 'ask_user success', 'Then blue it is.', 'true'],
      ...['May delete_file run with {"path":"/a.txt"}?', 'I leave it.', 'TurnFailed: cancelled'],
    ])
  })

  it.concurrent('is examples/chat.ts', async () => {
    const steps = [
      { tool_calls: [{ name: 'ask_user', arguments: { question: 'Which colour?' } }] },
      { text: 'Then blue it is.' },
      { error: { status: 400, message: 'No.' } },
    ]
    const { id } = await createScriptedAgent(steps)
    const program = await readFile('examples/chat.ts', 'utf8')
    const lines = ['Paint.', 'blue', 'And now?', '']
    const written = await project.run(program, { lines, args: [id], env: { API_URL: addressOf(api) } })
    expect(written).toMatch(/^Session session_\w+\. .*Which colour\? .*Then blue it is\.\n.*The turn failed: .*> $/s)
    const session = /session_\w+/.exec(written)?.[0] ?? ''
    const { body } = await call(addressOf(api), 'GET', `/v1/sessions/${session}/messages`)
    const entered = body.data.flatMap(({ role, content: [part] }: Json) =>
      role === 'user' ? [part.text] : role === 'tool_result' ? [part.result] : [],
    )
    expect(entered).toEqual(lines.slice(0, -1))
    // The input may end while a question is asked.
    const cut = await project.run(program, { lines: ['Paint.'], args: [id], env: { API_URL: addressOf(api) } })
    expect(cut).toMatch(/Then blue it is\.\n> $/)
  })
})

/** Creates an agent of the default organization, with which a program without headers works. */
async function createScriptedAgent(steps: object[]): Promise<Json> {
  const url = addressOf(api)
  const tools = [{ type: 'client_side', name: 'ask_user', description: 'Asks.', parameters: { type: 'object' } }]
  const system_prompt = `\`\`\`llmsim\n${JSON.stringify(steps)}\n\`\`\``
  const agent = { name: 'Painter', system_prompt, default_model_id: await modelId(url, 'llmsim-script'), tools }
  return (await call(url, 'POST', '/v1/agents', agent)).body
}
