import { ToolError } from '../../../domain/tools/capabilities/capability.ts'
import { type Answers, InputRequired } from '../../../domain/tools/capabilities/questions.ts'
import { checkState, toQuestions } from '../../../domain/tools/mcp/calls/questions.ts'
import type { Received } from '../../support/hostile-mcp-server.ts'
import { callOf, closeAll, endpointOf, failureOf, newClient, newServer } from './support.ts'

closeAll()

const KiB = 1024
const SCHEMA = { type: 'object', properties: { name: { type: 'string' } } }
const ask = (message: string) => ({ message, requestedSchema: SCHEMA })

/** Answers as the user of a session gives them: one to each run, and to the question that was asked then. */
const answerTo = (asked: Error, name: string): Answers => ({
  answers: { question: { action: 'accept', content: { name } } },
  state: asked instanceof InputRequired ? asked.state : undefined,
})

/** Starts a server whose tool asks all questions, one after the other, and returns the answers. */
async function newAsker(questions: { method?: string; params: unknown }[]) {
  const given: unknown[] = []
  let send: (message: unknown) => void = () => {}
  let call: Received
  const next = () => {
    const question = questions[given.length]
    const { method = 'elicitation/create', params } = question ?? {}
    if (question !== undefined) return send({ jsonrpc: '2.0', id: `ask-${given.length}`, method, params })
    send({ jsonrpc: '2.0', id: call.id, result: { content: [{ type: 'text', text: JSON.stringify(given) }] } })
    call.response.end()
  }
  const server = await newServer({
    'tools/call': (request) => {
      given.length = 0
      call = request
      send = request.stream()
      next()
    },
    answer: () => {},
    POST: () => {},
  })
  server.answers.answer = ({ status, result }) => {
    status(202)
    given.push(result)
    next()
  }
  return { server, given }
}

describe('a question in a session of the protocol', () => {
  it('is cancelled and asked of the user, and answered when the call runs again', async () => {
    const { server, given } = await newAsker([{ params: ask('Who?') }, { params: ask('Whose?') }])
    const client = newClient()
    const first = await failureOf(client.call(endpointOf(server), callOf()))
    expect(first).toBeInstanceOf(InputRequired)
    expect(first).toMatchObject({ questions: [{ key: 'question', message: 'Who?', schema: SCHEMA }] })
    expect(given).toEqual([{ action: 'cancel' }, { action: 'cancel' }])
    const ann = answerTo(first, 'Ann')
    const second = await failureOf(client.call(endpointOf(server), callOf({ answers: [ann] })))
    expect(second).toMatchObject({ questions: [{ key: 'question', message: 'Whose?' }] })
    const done = await client.call(endpointOf(server), callOf({ answers: [ann, answerTo(second, 'Bob')] }))
    expect(JSON.parse(`${done.value}`)).toEqual([
      { action: 'accept', content: { name: 'Ann' } },
      { action: 'accept', content: { name: 'Bob' } },
    ])
    const keys = server.of('tools/call').map(({ headers }) => headers['idempotency-key'])
    expect(keys).toEqual(['key', 'key:1', 'key:2'])
  })

  it('may be declined', async () => {
    const { server } = await newAsker([{ params: ask('Who?') }])
    const client = newClient()
    const { state } = (await failureOf(client.call(endpointOf(server), callOf()))) as InputRequired
    const answers: Answers[] = [{ answers: { question: { action: 'decline' } }, state }]
    const { value } = await client.call(endpointOf(server), callOf({ answers }))
    expect(value).toBe('[{"action":"decline"}]')
  })

  it.each<[string, unknown, unknown]>([
    ['another message', ask('Delete a?'), ask('Delete all?')],
    ['another schema', ask('Delete?'), { message: 'Delete?', requestedSchema: { type: 'object', properties: {} } }],
    [
      'another address',
      { mode: 'url', message: 'Pay', url: 'https://a.example/1', elicitationId: '1' },
      { mode: 'url', message: 'Pay', url: 'https://a.example/2', elicitationId: '1' },
    ],
  ])('is asked anew when it is another one in the next run: %s', async (_, before, after) => {
    const questions = [{ params: before }, { params: ask('Sure?') }]
    const { server, given } = await newAsker(questions)
    const client = newClient()
    const run = (answers: Answers[]) => failureOf(client.call(endpointOf(server), callOf({ answers })))
    const answers = [answerTo(await run([]), 'one')]
    answers.push(answerTo(await run(answers), 'sure of one'))
    questions[0] = { params: after }
    const anew = await run(answers)
    expect(anew).toMatchObject({ questions: [{ message: (after as { message: string }).message }] })
    expect(given).toEqual([{ action: 'cancel' }, { action: 'cancel' }])
    answers.push(answerTo(anew, 'two'))
    // What was answered after the other question does not count either.
    const sure = await run(answers)
    expect(sure).toMatchObject({ questions: [{ message: 'Sure?' }] })
    answers.push(answerTo(sure, 'sure of two'))
    await client.call(endpointOf(server), callOf({ answers }))
    expect(given).toMatchObject([{ content: { name: 'two' } }, { content: { name: 'sure of two' } }])
  })

  it('is the same one when the keys of its schema come in another order', async () => {
    const fields = { properties: { name: { type: 'string', title: 'Name' } }, type: 'object' }
    const questions = [{ params: { message: 'Who?', requestedSchema: fields } }]
    const { server } = await newAsker(questions)
    const client = newClient()
    const answers = [answerTo(await failureOf(client.call(endpointOf(server), callOf())), 'Ann')]
    const turned = { type: 'object', properties: { name: { title: 'Name', type: 'string' } } }
    questions[0] = { params: { message: 'Who?', requestedSchema: turned } }
    expect((await client.call(endpointOf(server), callOf({ answers }))).value).toMatch(/Ann/)
  })

  it('may send the user to an address', async () => {
    const url = 'https://shop.example/pay?id=1'
    const { server } = await newAsker([{ params: { mode: 'url', message: 'Pay', url, elicitationId: '1' } }])
    const failure = await failureOf(newClient().call(endpointOf(server), callOf()))
    expect(failure).toMatchObject({ questions: [{ key: 'question', message: 'Pay', url }] })
  })

  it('is asked although the tool does not end', async () => {
    const server = await newServer({
      'tools/call': ({ stream }) =>
        stream()({ jsonrpc: '2.0', id: 'ask', method: 'elicitation/create', params: ask('Who?') }),
    })
    const failure = await failureOf(newClient({ times: { asked: 50 } }).call(endpointOf(server), callOf()))
    expect(failure).toMatchObject({ questions: [{ message: 'Who?' }] })
    await server.of('tools/call')[0]?.ended
  })

  it('may come on the stream of the session while there is one call', async () => {
    const server = await newServer({ GET: ({ stream }) => void stream() })
    server.answers['tools/call'] = async ({ stream }) => {
      stream()
      let get = server.received.find(({ httpMethod }) => httpMethod === 'GET')
      while (get === undefined) {
        await new Promise((resolve) => setTimeout(resolve, 5))
        get = server.received.find(({ httpMethod }) => httpMethod === 'GET')
      }
      const message = { jsonrpc: '2.0', id: 'ask', method: 'elicitation/create', params: ask('Who?') }
      get.response.write(`data: ${JSON.stringify(message)}\n\n`)
    }
    const failure = await failureOf(newClient({ times: { asked: 50 } }).call(endpointOf(server), callOf()))
    expect(failure).toMatchObject({ questions: [{ message: 'Who?' }] })
  })

  it.each(['sampling/createMessage', 'roots/list'])('of another kind is refused: %s', async (method) => {
    const server = await newServer({
      'tools/call': ({ stream }) =>
        stream()({ jsonrpc: '2.0', id: 'ask', method, params: { messages: [], maxTokens: 1 } }),
      '': () => {},
    })
    const refused = new Promise<unknown>((resolve) => {
      server.answers[''] = (received) => {
        received.status(202)
        const { id, response, ...rest } = received
        resolve('error' in rest ? rest.error : undefined)
        const result = { isError: true, content: [{ type: 'text', text: 'There is no model.' }] }
        server
          .of('tools/call')[0]
          ?.response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: server.of('tools/call')[0]?.id, result })}\n\n`)
      }
    })
    const failure = await failureOf(newClient().call(endpointOf(server), callOf()))
    expect(failure).toEqual(new ToolError('There is no model.'))
    expect(await refused).toMatchObject({ code: -32_601 })
  })

  it('by an error sends the user to addresses', async () => {
    const elicitations = ['https://a.example/', 'https://b.example/'].map((url, at) => ({
      mode: 'url',
      message: `Visit ${at}`,
      url,
      elicitationId: `${at}`,
    }))
    const server = await newServer({ 'tools/call': ({ fail }) => fail(-32_042, 'Visit first', { elicitations }) })
    const failure = await failureOf(newClient().call(endpointOf(server), callOf()))
    expect(failure).toMatchObject({
      questions: [
        { key: '0', message: 'Visit 0', url: 'https://a.example/' },
        { key: '1', message: 'Visit 1', url: 'https://b.example/' },
      ],
    })
  })

  it.each([{ elicitations: [] }, { elicitations: {} }, { elicitations: 7 }, {}, undefined, 'none'])(
    'by an error is refused without addresses: %j',
    async (data) => {
      const server = await newServer({ 'tools/call': ({ fail }) => fail(-32_042, 'Visit first', data) })
      const failure = await failureOf(newClient().call(endpointOf(server), callOf()))
      expect(failure).toBeInstanceOf(ToolError)
    },
  )

  it('is asked at most ten times', async () => {
    const { server } = await newAsker(Array.from({ length: 11 }, () => ({ params: ask('Again?') })))
    const client = newClient()
    const first = await failureOf(client.call(endpointOf(server), callOf()))
    const answers = Array<Answers>(10).fill(answerTo(first, 'Ann'))
    const failure = await failureOf(client.call(endpointOf(server), callOf({ answers })))
    expect(failure).toEqual(new ToolError('The MCP server "Acme" still asks after 10 rounds of questions.'))
  })

  it.each<[string, unknown, RegExp]>([
    ['a long message', ask('ä'.repeat(10 * KiB)), /^ä{2048}$/],
    ['control characters', ask('a\0b'), /^ab$/],
  ])('is cut: %s', async (_, params, expected) => {
    const { server } = await newAsker([{ params }])
    const failure = await failureOf(newClient().call(endpointOf(server), callOf()))
    expect(failure).toMatchObject({ questions: [{ message: expect.stringMatching(expected) }] })
  })

  it.each<[string, Record<string, unknown>, RegExp]>([
    ['a large schema', { ...ask('a'), requestedSchema: { ...SCHEMA, $comment: 'x'.repeat(17 * KiB) } }, /16 KiB/],
    [
      'an address of a file',
      { mode: 'url', message: 'a', url: 'file:///etc/passwd', elicitationId: '1' },
      /not an http or/,
    ],
    [
      'a script',
      { mode: 'url', message: 'a', url: 'javascript:alert(1)', elicitationId: '1' },
      /not an http or https URL/,
    ],
  ])('is refused with %s', async (_, params, expected) => {
    const { server } = await newAsker([{ params }])
    const failure = await failureOf(newClient().call(endpointOf(server), callOf()))
    expect(failure).toBeInstanceOf(ToolError)
    expect(failure.message).toMatch(expected)
  })
})

describe('questions of a stateless server', () => {
  const asIs = <T>(value: T) => value
  const request = { method: 'elicitation/create', params: ask('Who?') }

  it.each<[string, unknown, RegExp]>([
    ['none', {}, /does not say which/],
    ['no object', [request], /does not say which/],
    ['a key with NUL', { 'a\0b': request }, /key that cannot be used/],
    ['a key with half a character', { 'a\ud800': request }, /key that cannot be used/],
    [
      'a key that is lost in objects',
      JSON.parse(`{"__proto__":${JSON.stringify(request)}}`),
      /key that cannot be used/,
    ],
    ['a method that is not a text', { a: { method: { toString: 1 } } }, /asks for something unknown/],
  ])('are refused: %s', (_, requests, expected) => {
    expect(() => toQuestions(requests, asIs)).toThrow(expected)
  })

  it.each<[string, unknown]>([
    ['NUL', 'a\0'],
    ['half a character', '\udc00'],
    ['no text', { a: 1 }],
    ['null', null],
  ])('are refused with a state that does not come back as it was: %s', (_, state) => {
    expect(() => checkState(state, asIs)).toThrow('asks questions with a state that cannot be used.')
  })
})
