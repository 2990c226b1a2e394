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
  waitUntilIdle,
} from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const post = (id: string, body: unknown, query = '') => call(api, 'POST', `/v1/sessions/${id}/messages${query}`, body)
const list = (id: string, query = '') => call(api, 'GET', `/v1/sessions/${id}/messages${query}`)
const parts = (...content: unknown[]) => ({ message: { content } })
const textsOf = (body: Json): string[] => body.data.map((message: Json) => message.content[0].text)

describe('posting a message', () => {
  it('answers 201 with the message, its sequence and everything that came with it', async () => {
    const id = await createSession(api)
    const sent = {
      message: {
        role: 'user',
        content: [
          { type: 'text', text: 'Look: \u2028 “x”' },
          { type: 'image', url: 'https://example.com/a.png' },
          { type: 'image', base64: 'aGk=', media_type: 'image/png' },
        ],
      },
      controls: { model_id: await modelId(api, 'llmsim-echo'), reasoning: { effort: 'low' } },
      metadata: { nested: { list: [1, null, 'x'], constructor: { toString: 'no' } }, number: 1.5 },
      tags: ['first', ''],
    }
    const { status, body } = await post(id, sent)
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(/^message_[0-9a-f]{32}$/),
      session_id: id,
      sequence: 1,
      role: 'user',
      content: sent.message.content,
      controls: sent.controls,
      metadata: sent.metadata,
      tags: sent.tags,
      created_at: expect.stringMatching(/Z$/),
    })
    const events = await waitUntilIdle(api, id)
    expect(events[0]).toMatchObject({ type: 'input.message', context: {}, data: { message: body } })
    expect((await list(id)).body.data[0]).toEqual(body)
  })

  it('refers to an image by its UUID, in whatever form it was given', async () => {
    const image_id = '0193aaaa-bbbb-7ccc-8ddd-0123456789ab'
    for (const given of [image_id, unknownId('img')]) {
      const { status, body } = await post(await createSession(api), parts({ type: 'image_file', image_id: given }))
      expect([status, body.content]).toEqual([201, [{ type: 'image_file', image_id }]])
    }
  })

  it('answers with the model that the message names, for its own turn only', async () => {
    const id = await createSession(api)
    const controls = { model_id: await modelId(api, 'llmsim-echo'), reasoning: { effort: 'low' } }
    const first = await post(id, textMessage('parrot', { controls }), '?wait=60')
    expect(first.body.output).toMatchObject({ role: 'agent', content: [{ type: 'text', text: 'parrot' }] })
    expect(first.body.output.metadata).toEqual({ model: 'llmsim-echo', reasoning_effort: 'low' })
    const second = await post(id, textMessage('parrot'), '?wait=60')
    expect(second.body.output.metadata).toEqual({ model: 'llmsim-default' })
  })

  it('makes answers and results that name the message and its turn, however late they come', async () => {
    const calls = { tool_calls: [{ name: 'add', arguments: { a: 1, b: 2 } }] }
    const capabilities = [{ ref: 'test_math' }]
    const id = await createScriptedSession(api, [calls, { text: '3' }, { text: 'Yes.' }], { capabilities })
    const [first, second] = (await Promise.all(['1+2?', 'Sure?'].map((text) => post(id, textMessage(text))))).map(
      ({ body }) => body,
    )
    await waitUntilIdle(api, id)
    const { data } = (await list(id)).body
    const answered = (message: Json) => data.filter(({ input_message_id }: Json) => input_message_id === message.id)
    const roles = [answered(first), answered(second)].map((messages) => messages.map(({ role }: Json) => role))
    expect(roles.sort()).toEqual([['agent'], ['agent', 'tool_result', 'agent']])
    const turn_id = first.id.replace('message_', 'turn_')
    expect(answered(first)).toEqual(answered(first).map((message: Json) => ({ ...message, turn_id })))
    const { output } = (await post(id, textMessage('Again'), '?wait=60')).body
    const listed = (await list(id, '?order=desc&limit=1')).body.data[0]
    const completed = (await listEvents(api, id, '?types=output.message.completed')).at(-1)
    expect([listed, completed.data.message]).toEqual([output, output])
  })

  it.each<[string, unknown, RegExp]>([
    ['no message', {}, /^message: /],
    [
      'the role agent',
      { message: { role: 'agent', content: [{ type: 'text', text: 'x' }] } },
      /^message\.role: must be "user"/,
    ],
    [
      'a role that does not exist',
      { message: { role: 'robot', content: [{ type: 'text', text: 'x' }] } },
      /^message\.role: must be "user" or be left out$/,
    ],
    [
      'the role system',
      { message: { role: 'system', content: [{ type: 'text', text: 'x' }] } },
      /^message\.role: must be "user"/,
    ],
    ['no content', { message: {} }, /^message\.content: /],
    ['empty content', parts(), /^message\.content: must have at least one part/],
    ['content that is a number', { message: { content: 5 } }, /^message\.content: .*array/],
    ['a part that is a string', parts('hi'), /^message\.content\.0: .*object/],
    ['a part of an unknown type', parts({ type: 'video' }), /^message\.content\.0\.type: .*text.*image/],
    [
      'a tool call part',
      parts({ type: 'tool_call', id: 'a', name: 'b', arguments: {} }),
      /^message\.content\.0\.type: /,
    ],
    ['a text part without text', parts({ type: 'text' }), /^message\.content\.0\.text: is required/],
    [
      'an image without url and base64',
      parts({ type: 'text', text: 'x' }, { type: 'image' }),
      /^message\.content\.1: .*url.*base64/,
    ],
    ['base64 without media_type', parts({ type: 'image', base64: 'aGk=' }), /^message\.content\.0\.media_type: /],
    [
      'malformed base64',
      parts({ type: 'image', base64: 'a b!', media_type: 'image/png' }),
      /^message\.content\.0\.base64: /,
    ],
    [
      'an image id of another kind',
      parts({ type: 'image_file', image_id: unknownId('session') }),
      /image_id: must be a UUID/,
    ],
    ['an image file without image_id', parts({ type: 'image_file' }), /^message\.content\.0\.image_id: /],
    [
      'an unknown model',
      textMessage('x', { controls: { model_id: unknownId('model') } }),
      /^controls\.model_id: there is no model/,
    ],
    [
      'a malformed model id',
      textMessage('x', { controls: { model_id: 'model_1' } }),
      /^controls\.model_id: must be model_/,
    ],
    [
      'an unknown effort',
      textMessage('x', { controls: { reasoning: { effort: 'huge' } } }),
      /^controls\.reasoning\.effort: .*minimal/,
    ],
    ['metadata that is a list', textMessage('x', { metadata: [] }), /^metadata: /],
    ['a tag that is a number', textMessage('x', { tags: [1] }), /^tags\.0: .*string/],
  ])('refuses %s', async (_, body, sentence) => {
    const id = await createSession(api)
    expectError(await post(id, body), 400, sentence)
    expect((await list(id)).body.data).toEqual([])
  })

  it('takes 1 MiB of text and not one byte more', async () => {
    const id = await createSession(api)
    expect((await post(id, textMessage('x'.repeat(1024 * 1024)))).status).toBe(201)
    expectError(await post(id, textMessage('x'.repeat(1024 * 1024 + 1))), 400, /^message\.content: .*1 MiB/)
    const half = { type: 'text', text: 'x'.repeat(1024 * 512 + 1) }
    expectError(await post(id, parts(half, half)), 400, /^message\.content: .*1 MiB/)
  })

  it('answers 404 for an unknown session and 400 for a malformed session id', async () => {
    expectError(await post(unknownId('session'), textMessage('x')), 404, 'Session not found')
    expectError(await post('session_1', textMessage('x')), 400, /^session_id: /)
  })
})

describe('listing messages', () => {
  let id: string
  beforeAll(async () => {
    id = await createSession(api, {}, { model_id: await modelId(api, 'llmsim-echo') })
    for (const text of ['one', 'two', 'three']) await post(id, textMessage(text), '?wait=60')
  })

  it('has questions and answers, oldest first', async () => {
    const { status, body } = await list(id)
    expect(status).toBe(200)
    expect(textsOf(body)).toEqual(['one', 'one', 'two', 'two', 'three', 'three'])
    expect(body.data.map((message: Json) => message.role)).toEqual(['user', 'agent', 'user', 'agent', 'user', 'agent'])
    const sequences = body.data.map((message: Json) => message.sequence)
    expect(sequences).toEqual([...sequences].sort((a, b) => a - b))
  })

  it('has them newest first when asked, a page at a time', async () => {
    expect(textsOf((await list(id, '?order=desc')).body)).toEqual(['three', 'three', 'two', 'two', 'one', 'one'])
    expect(textsOf((await list(id, '?order=desc&limit=3&offset=1')).body)).toEqual(['three', 'two', 'two'])
    expect(textsOf((await list(id, '?order=asc&limit=2&offset=1')).body)).toEqual(['one', 'two'])
    expect(textsOf((await list(id, `?limit=${'9'.repeat(40)}&offset=5`)).body)).toEqual(['three'])
    expect(textsOf((await list(id, '?offset=999999999999999')).body)).toEqual([])
  })

  it.each(['order=up', 'limit=-1', 'limit=0', 'limit=x', 'offset=-1'])('refuses ?%s', async (query) => {
    expectError(await list(id, `?${query}`), 400, new RegExp(`^${query.split('=')[0]}: `))
  })

  it('answers 404 for an unknown session and 400 for a malformed session id', async () => {
    expectError(await list(unknownId('session')), 404, 'Session not found')
    expectError(await list('x'), 400, /^session_id: /)
  })
})
