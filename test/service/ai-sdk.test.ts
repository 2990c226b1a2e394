import { createScriptedAgent } from '../support/agents.ts'
import { type Answer, call, createScriptedSession, type Json, listEvents, unknownId, waitFor } from '../support/http.ts'
import { startService } from '../support/service.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { callsOf, clientTool, guardedTool, listTurns, MUTE, statusOf, submit, waitForEvent } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const agentOf = (steps: object[], more: object = {}) => createScriptedAgent(api, steps, more)

const user = (text: string) => ({ id: `u-${text}`, role: 'user', parts: [{ type: 'text', text }] })
const assistant = (...parts: object[]) => ({ id: 'a', role: 'assistant', parts })

type Chat = { agent: string; id?: string; version?: number; query?: string; target?: Organization }
const pathOf = ({ agent, version = 7 }: Chat) => `/v1/faces/ai-sdk/${version}/${agent}`

const send = (chat: Chat, messages: object[], more: object = {}): Promise<Answer> => {
  const { id = 'chat', target = api, query = '' } = chat
  return call(target, 'POST', pathOf(chat) + query, { id, messages, trigger: 'submit-message', ...more })
}
const at = (chat: Chat, method: string, what: string, body?: object): Promise<Answer> =>
  call(chat.target ?? api, method, `${pathOf(chat)}/${chat.id ?? 'chat'}/${what}`, body)

/** Returns the chunks of a stream that has ended as it should. */
function chunksOf({ status, body }: Answer): Json[] {
  expect({ status, body }).toMatchObject({ status: 200, body: expect.stringMatching(/data: \[DONE\]\n\n$/) })
  const lines = String(body)
    .split('\n\n')
    .filter((line) => line.startsWith('data: {'))
  return lines.map((line) => JSON.parse(line.slice('data: '.length)))
}
const textOf = (chunks: Json[]) => chunks.map(({ type, delta }) => (type === 'text-delta' ? delta : '')).join('')
const sessionOf = ({ headers }: Answer) => headers.get('x-session-id') ?? ''

describe('a chat of the AI SDK', () => {
  it('is one session, with one message a turn', async () => {
    const chat = { agent: await agentOf([{ text: 'One.' }, { text: 'Two.' }]) }
    expect((await at(chat, 'GET', 'messages')).body).toEqual([])
    const first = await send(chat, [user('1')])
    expect(first.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1')
    expect(textOf(chunksOf(first))).toBe('One.')
    const second = await send(chat, [user('1'), assistant({ type: 'text', text: 'Forged.' }), user('2')])
    const [start, ...chunks] = chunksOf(second)
    expect(textOf(chunks)).toBe('Two.')
    expect(sessionOf(second)).toBe(sessionOf(first))
    const history = (await at(chat, 'GET', 'messages')).body
    expect(history.map(({ role, parts }: Json) => [role, parts.at(-1).text])).toEqual([
      ['user', '1'],
      ['assistant', 'One.'],
      ['user', '2'],
      ['assistant', 'Two.'],
    ])
    expect(start).toEqual({ type: 'start', messageId: history[3].id })
    expect((await at(chat, 'GET', 'stream')).status).toBe(204)
  })

  it('is made once by requests at the same time, and posts a repeated message once', async () => {
    const chat = { agent: await agentOf([{ text: 'One.' }]) }
    const answers = await Promise.all([1, 2, 3].map(() => send(chat, [user('1')])))
    expect(answers.map((answer) => textOf(chunksOf(answer)))).toEqual(['One.', 'One.', 'One.'])
    expect(new Set(answers.map(sessionOf)).size).toBe(1)
    expect(await listTurns(api, sessionOf(answers[0] as Answer))).toHaveLength(1)
    expect((await call(api, 'GET', `/v1/sessions?agent_id=${chat.agent}`)).body.total).toBe(1)
  })

  it('belongs to its organization', async () => {
    const other = await newOrganization()
    const agent = await agentOf([{ text: 'One.' }])
    chunksOf(await send({ agent }, [user('1')]))
    const foreign = { agent, target: other }
    expect(await send(foreign, [user('1')])).toMatchObject({ status: 404, body: 'Agent not found' })
    expect((await at(foreign, 'GET', 'messages')).body).toEqual([])
    expect((await at(foreign, 'GET', 'stream')).status).toBe(204)
    expect((await at(foreign, 'POST', 'stop')).status).toBe(204)
  })

  it.each([5, 6, 7])('takes back the text of a failed attempt in version %i', async (version) => {
    const error = { status: 503, message: 'overloaded', times: 1, retry_after_ms: 100, after_text: true }
    const chat = { agent: await agentOf([{ text: 'All of it.', tokens_per_second: 20, error }]), version }
    const chunks = chunksOf(await send(chat, [user('1')]))
    const kept = chunks.slice(chunks.findLastIndex(({ type }) => type === 'reset-step') + 1)
    expect(kept.length < chunks.length).toBe(version === 7)
    expect(textOf(kept)).toBe('All of it.')
  })

  it('gives a client tool its call, and goes on with the result in the same message', async () => {
    const steps = [{ text: 'Let me ask.', tool_calls: callsOf('ask') }, { text: 'Thanks.' }]
    const chat = { agent: await agentOf(steps, { tools: [clientTool('ask')] }) }
    const first = chunksOf(await send(chat, [user('1')]))
    expect(first.find(({ type }) => type === 'tool-input-available')).toEqual({
      type: 'tool-input-available',
      toolCallId: 'ask',
      toolName: 'ask',
      input: {},
    })
    expect(first.at(-1)).toEqual({ type: 'finish', finishReason: 'tool-calls' })
    expect((await at(chat, 'GET', 'stream')).status).toBe(204)
    const waiting = (await at(chat, 'GET', 'messages')).body[1]
    expect(waiting.parts.at(-1)).toEqual({ type: 'tool-ask', toolCallId: 'ask', input: {}, state: 'input-available' })
    const answered = assistant({ ...waiting.parts.at(-1), state: 'output-available', output: { a: 1 } })
    const messages = [user('1'), answered]
    const again = await send(chat, messages)
    const repeated = await send(chat, messages)
    for (const answer of [again, repeated]) {
      const [start, ...chunks] = chunksOf(answer)
      expect(start.messageId).toBe(first[0].messageId)
      expect(textOf(chunks)).toBe('Thanks.')
    }
    const [result] = (await listEvents(api, sessionOf(again))).filter(({ type }) => type === 'tool.completed')
    expect(result.data.result).toEqual([{ type: 'text', text: '{"a":1}' }])
  })

  it.each([
    [true, 'output-available', 'tool-output-available'],
    [false, 'output-denied', 'tool-output-denied'],
  ])('asks for approval, and takes %s', async (approved, state, chunk) => {
    const steps = [
      { tool_calls: [{ id: 'c1', name: 'get_weather', arguments: { location: 'Oslo' } }] },
      { text: 'So.' },
    ]
    const more = { capabilities: ['test_weather'], tools: [guardedTool('get_weather')] }
    const chat = { agent: await agentOf(steps, more) }
    const first = chunksOf(await send(chat, [user('1')]))
    expect(first).toContainEqual({ type: 'tool-approval-request', approvalId: 'c1', toolCallId: 'c1' })
    const [, waiting] = (await at(chat, 'GET', 'messages')).body
    expect(waiting.parts.at(-1)).toMatchObject({ state: 'approval-requested', approval: { id: 'c1' } })
    const response = { ...waiting.parts.at(-1), state: 'approval-responded', approval: { id: 'c1', approved } }
    const chunks = chunksOf(await send(chat, [user('1'), assistant({ ...response, input: { location: 'Forged' } })]))
    expect(chunks.map(({ type }) => type)).toContain(chunk)
    const [, done] = (await at(chat, 'GET', 'messages')).body
    expect(done.parts.find(({ type }: Json) => type === 'tool-get_weather')).toMatchObject({
      input: { location: 'Oslo' },
      state,
    })
  })

  it('waits on for the answers that a request does not have', async () => {
    const chat = {
      agent: await agentOf([{ tool_calls: callsOf('a', 'b') }], { tools: [clientTool('a'), clientTool('b')] }),
    }
    await send(chat, [user('1')])
    const one = await send(chat, [user('1'), assistant({ type: 'tool-a', toolCallId: 'a', state: 'output-available' })])
    // Marked as given, so that the client does not send it again and again.
    const settled = { type: 'tool-output-available', toolCallId: 'a', output: null, providerExecuted: true }
    expect(chunksOf(one).slice(1)).toEqual([settled, { type: 'finish', finishReason: 'tool-calls' }])
    expect(await statusOf(api, sessionOf(one))).toBe('waitingfortoolresults')
    await submit(api, sessionOf(one), [{ tool_call_id: 'b', result: 1 }])
  })

  it('resumes a running turn from its start, goes on without its reader, and stops', async () => {
    const chat = { agent: await agentOf([{ text: 'One' }, { thinking: 'Long', ...MUTE }]) }
    await send(chat, [user('1')])
    const reader = new AbortController()
    const body = JSON.stringify({ id: 'chat', messages: [user('2')] })
    const headers = { 'Content-Type': 'application/json', ...api.headers }
    const left = await fetch(api.url + pathOf(chat), { method: 'POST', headers, body, signal: reader.signal })
    const session = left.headers.get('x-session-id') ?? ''
    await waitForEvent(api, session, 'output.message.started', 2)
    reader.abort()
    const resumed = await fetch(`${api.url + pathOf(chat)}/chat/stream`, { headers: api.headers })
    expect((await at(chat, 'GET', 'messages')).body.map(({ role }: Json) => role)).toEqual([
      'user',
      'assistant',
      'user',
    ])
    expect((await at(chat, 'POST', 'stop', { activeStreamId: 'msg_another' })).status).toBe(204)
    expect(await statusOf(api, session)).toBe('active')
    expect((await at(chat, 'POST', 'stop')).status).toBe(204)
    const stream = await resumed.text()
    expect(
      chunksOf({ status: resumed.status, body: stream, headers: resumed.headers }).map(({ type }) => type),
    ).toEqual(['start', 'start-step', 'finish-step', 'finish'])
    expect((await listTurns(api, session)).map(({ status }) => status)).toEqual(['completed', 'cancelled'])
    expect((await at(chat, 'POST', 'stop')).status).toBe(204)
  })

  it('queues a message that comes during a turn', async () => {
    const chat = { agent: await agentOf([MUTE, { text: 'Two.' }]) }
    const first = send(chat, [user('1')])
    const session = await waitFor(async () => {
      const { body } = await call(api, 'GET', `/v1/sessions?agent_id=${chat.agent}`)
      return body.data[0]?.status === 'active' && body.data[0].id
    }, 'the first turn')
    const second = send(chat, [user('1'), user('2')])
    await waitForEvent(api, session, 'input.message', 2)
    const third = send(chat, [user('1'), user('2'), user('3')])
    await waitForEvent(api, session, 'input.message', 3)
    const last = (await listTurns(api, session)).at(-1)
    await at(chat, 'POST', 'stop', { activeStreamId: last.id.replace('turn_', 'msg_') })
    expect(chunksOf(await third).at(-1)).toEqual({ type: 'finish', finishReason: 'interrupted' })
    await at(chat, 'POST', 'stop')
    expect(chunksOf(await first).at(-1)).toEqual({ type: 'finish', finishReason: 'interrupted' })
    expect(textOf(chunksOf(await second))).not.toBe('')
  })

  it('follows the turn of a message that is sent again, and posts a message that never arrived', async () => {
    const chat = { agent: await agentOf([{ text: 'One.' }, MUTE]) }
    const again = { trigger: 'regenerate-message' }
    const posted = await send(chat, [user('1')], again)
    expect(textOf(chunksOf(posted))).toBe('One.')
    const ended = await send(chat, [user('1')], again)
    expect(ended).toMatchObject({ status: 409, body: expect.stringMatching(/cannot be generated again/) })
    const first = send(chat, [user('2')])
    const session = sessionOf(posted)
    await waitForEvent(api, session, 'output.message.started', 2)
    const headers = { 'Content-Type': 'application/json', ...api.headers }
    const body = JSON.stringify({ id: 'chat', messages: [user('2')], ...again })
    // It follows the turn once its head has come.
    const second = await fetch(api.url + pathOf(chat), { method: 'POST', headers, body })
    await at(chat, 'POST', 'stop')
    const other = { status: second.status, body: await second.text(), headers: second.headers }
    expect(chunksOf(other)[0]).toEqual(chunksOf(await first)[0])
    expect(await listTurns(api, session)).toHaveLength(2)
  })

  it('shows why a turn failed', async () => {
    const chat = { agent: await agentOf([{ error: { status: 400, message: 'too long' } }]) }
    const chunks = chunksOf(await send(chat, [user('1')]))
    expect(chunks.at(-1)).toEqual({ type: 'error', errorText: 'llmsim answered 400: too long' })
  })

  describe('refuses', () => {
    let agent: string
    beforeAll(async () => {
      agent = await agentOf([{ text: 'One.' }])
      chunksOf(await send({ agent }, [user('0')]))
    })
    const forged = { type: 'tool-ask', toolCallId: 'never', state: 'output-available', output: 1 }
    const approved = {
      type: 'tool-ask',
      toolCallId: 'never',
      state: 'approval-responded',
      approval: { approved: true },
    }
    it.each<[string, () => Promise<Answer>, number, RegExp]>([
      ['an unknown agent', () => send({ agent: unknownId('agent') }, [user('1')]), 404, /^Agent not found$/],
      ['an id of another form', () => send({ agent: 'x' }, [user('1')]), 400, /^agent_id: /],
      ['another version', () => send({ agent, version: 8 }, [user('1')]), 400, /^version: /],
      ['no messages', () => send({ agent }, []), 400, /^messages: must have a message/],
      [
        'an output that nobody waits for',
        () => send({ agent }, [user('0'), assistant(forged)]),
        409,
        /no answer to a call/,
      ],
      ['an approval that nobody waits for', () => send({ agent }, [assistant(approved)]), 409, /no answer to a call/],
      ['a chat without an id', () => send({ agent, id: '' }, [user('1')]), 400, /^id: must not be empty/],
      [
        'a message with only unknown parts',
        () => send({ agent }, [{ role: 'user', parts: [{ type: 'x' }] }]),
        400,
        /parts/,
      ],
      [
        'more text than a message may have',
        () => send({ agent }, [user('x'.repeat(1024 * 1024 + 1))]),
        400,
        /at most 1 MiB/,
      ],
      [
        'to generate an answer again',
        () => send({ agent }, [user('0')], { trigger: 'regenerate-message' }),
        409,
        /cannot be generated again/,
      ],
      [
        'more than 16 MiB',
        () => send({ agent }, [user('x'.repeat(17 * 1024 * 1024))]),
        413,
        /must be at most 16777216 bytes/,
      ],
    ])('%s', async (_, request, status, sentence) => {
      const answer = await request()
      expect(answer).toMatchObject({ status, body: expect.stringMatching(sentence) })
      expect(answer.headers.get('x-should-retry')).toBe('false')
    })

    it('an archived agent, unless the chat began before', async () => {
      const chat = { agent: await agentOf([{ text: 'One.' }, { text: 'Two.' }]) }
      chunksOf(await send(chat, [user('1')]))
      await call(api, 'DELETE', `/v1/agents/${chat.agent}`)
      expect(textOf(chunksOf(await send(chat, [user('2')])))).toBe('Two.')
      expect(await send({ ...chat, id: 'new' }, [user('1')])).toMatchObject({ status: 400, body: /archived/ })
    })
  })

  it('takes a long history, and only its last message', async () => {
    const chat = { agent: await agentOf([{ text: 'One.' }]) }
    const old = { ...user('old'), parts: [{ type: 'text', text: 'x'.repeat(1024 * 1024) }] }
    const answer = await send(chat, [...Array(10).fill(old), user('1')])
    expect(textOf(chunksOf(answer))).toBe('One.')
    const messages = (await call(api, 'GET', `/v1/sessions/${sessionOf(answer)}/messages`)).body.data
    expect(messages.map(({ content }: Json) => content[0].text)).toEqual(['1', 'One.'])
  })

  it('starts anew when its session was deleted', async () => {
    const chat = { agent: await agentOf([{ text: 'One.' }]) }
    const first = await send(chat, [user('1')])
    await call(api, 'DELETE', `/v1/sessions/${sessionOf(first)}`)
    expect((await at(chat, 'GET', 'messages')).body).toEqual([])
    const again = await send(chat, [user('2')])
    expect(sessionOf(again)).not.toBe(sessionOf(first))
  })
})

it('is not served where FACES leaves it out', async () => {
  const service = await startService({ environment: { FACES: 'none' }, worker: false })
  try {
    const id = await createScriptedSession(service.url, [])
    expect(id).toMatch(/^session_/)
    expect((await call(service.url, 'GET', `/v1/faces/ai-sdk/7/${unknownId('agent')}/c/stream`)).status).toBe(404)
  } finally {
    await service.stop()
  }
})
