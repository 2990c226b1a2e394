import { randomUUID } from 'node:crypto'
import OpenAI from 'openai'
import { waitFor } from '../support/http.ts'
import { PIXEL } from '../support/pictures.ts'
import { createRandom } from '../support/random.ts'
import { slow } from './ai/scenario.ts'
import { GUARDED, newAccount } from './ai/stage.ts'
import { openStage, type Stage, withStage } from './openai/stage.ts'

let account: ReturnType<typeof newAccount> | undefined

/** Runs a test with a client of the package, as a program has it that knows address, key and conversation. */
const withClient = async (steps: object[], check: (client: OpenAI, stage: Stage) => Promise<void>): Promise<void> => {
  account ??= newAccount()
  const own = await account
  await withStage(own, steps, (stage) => check(clientOf(stage, own.key), stage))
}

const clientOf = (stage: Stage, apiKey: string, headers = { 'X-Session-Id': randomUUID() }) =>
  new OpenAI({ baseURL: stage.baseURL, apiKey, defaultHeaders: headers })

type Message = OpenAI.ChatCompletionMessageParam
const user = (content: string): Message => ({ role: 'user', content })

/** Asks with a stream. Returns everything that came. */
async function ask(client: OpenAI, model: string, messages: Message[]) {
  let [text, thinking] = ['', '']
  const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } })
  stream.on('chunk', ({ choices: [choice] }) => {
    const delta = choice?.delta as { content?: string | null; reasoning_content?: string } | undefined
    text += delta?.content ?? ''
    thinking += delta?.reasoning_content ?? ''
  })
  const final = await stream.finalChatCompletion()
  return { text, thinking, final, message: final.choices[0]?.message }
}

const TOOL = (name: string, run: (input: object) => unknown) => ({
  type: 'function' as const,
  function: {
    name,
    parse: JSON.parse,
    function: run,
    parameters: { type: 'object', properties: {} },
    description: name,
  },
})
const ASK = { tool_calls: [{ name: 'ask_user', arguments: { question: 'Which?' } }] }

it.concurrent('lists the agents as models', () =>
  withClient([], async (client, { agentId }) => {
    const { data } = await client.models.list()
    expect(data).toContainEqual(expect.objectContaining({ id: agentId, object: 'model' }))
  }))

it.concurrent('gets an answer at once', () =>
  withClient([{ thinking: 'Hm.', text: 'Good morning 🦊' }], async (client, stage) => {
    const answer = await client.chat.completions.create({ model: stage.agentId, messages: [user('Hello')] })
    expect(answer).toMatchObject({
      object: 'chat.completion',
      model: stage.agentId,
      choices: [{ index: 0, message: { role: 'assistant', content: 'Good morning 🦊' }, finish_reason: 'stop' }],
    })
    expect(answer.usage?.total_tokens).toBeGreaterThan(0)
    await stage.expectStored(['Hello', 'Good morning 🦊'])
  }))

it.concurrent('streams answers of one conversation, whose history it sends each time', () =>
  withClient([{ thinking: 'Let me see. ', ...slow(1, 40) }, { text: 'And good night.' }], async (client, stage) => {
    const first = await ask(client, stage.agentId, [user('Hello')])
    expect([first.text, first.thinking.trim()]).toEqual([slow(1).text, 'Let me see.'])
    expect(first.message?.content).toBe(slow(1).text)
    expect(first.final.usage?.total_tokens).toBeGreaterThan(0)
    const { text } = await ask(client, stage.agentId, [
      user('Hello'),
      { role: 'assistant', content: first.text },
      user('Bye'),
    ])
    expect(text).toBe('And good night.')
    await stage.expectStored(['Hello', first.text], ['Bye', text])
  }))

it.concurrent('sees nothing of the tools that the service runs but their outcome', () =>
  withClient(
    [
      {
        text: 'Two at once. ',
        tool_calls: ['a', 'b'].map((text) => ({ name: 'repeat', arguments: { text, times: 2 } })),
      },
      { text: 'Both have ended.' },
    ],
    async (client, stage) => {
      const { text, final } = await ask(client, stage.agentId, [user('Go')])
      // The texts of two steps are paragraphs.
      expect([text, final.choices[0]?.finish_reason]).toEqual(['Two at once. \n\nBoth have ended.', 'stop'])
      await stage.expectStored(['Go', text.replace('\n\n', '')])
    },
  ))

it.concurrent.each([true, false])('runs its own tools, two of them at once (stream: %s)', (stream) =>
  withClient(
    [
      { text: 'Two questions.', tool_calls: [...ASK.tool_calls, { name: 'look_around', arguments: {} }] },
      ASK,
      { text: 'Rain and dusk.' },
    ],
    async (client, stage) => {
      const seen: string[] = []
      const tools = ['ask_user', 'look_around'].map((name) => TOOL(name, () => `${name} ${seen.push(name)}`))
      const question = { model: stage.agentId, messages: [user('How is it?')], tools }
      const run = stream
        ? client.chat.completions.runTools({ ...question, stream: true })
        : client.chat.completions.runTools(question)
      expect(await run.finalContent()).toBe('Rain and dusk.')
      expect(seen.toSorted()).toEqual(['ask_user', 'ask_user', 'look_around'])
      expect(stage.posts()).toBe(3)
      const [turn, ...others] = await stage.turns()
      expect(others).toEqual([])
      expect(turn).toMatchObject({ status: 'completed', results: [{}, {}, {}] })
      expect(JSON.stringify(turn?.results)).toMatch(/ask_user 1.*look_around 2.*ask_user 3/)
    },
  ),
)

it.concurrent('asks something else instead of giving the output that is waited for', () =>
  withClient([ASK, { text: 'Never mind.' }], async (client, stage) => {
    const tools = [TOOL('ask_user', () => '')]
    const first = await client.chat.completions.create({ model: stage.agentId, messages: [user('Paint')], tools })
    expect(first.choices[0]?.finish_reason).toBe('tool_calls')
    const { text } = await ask(client, stage.agentId, [user('Paint'), user('Forget it')])
    expect(text).toBe('Never mind.')
    expect((await stage.turns()).map(({ status }) => status)).toEqual(['cancelled', 'completed'])
  }))

it.concurrent.each([
  ['approve', 'It has run.', 'output'],
  ['deny', 'It has not run.', 'error'],
])('answers %s where approval is asked for, also with tools of its own', (decision, answer, outcome) =>
  withClient(
    [{ tool_calls: [{ name: GUARDED, arguments: { text: 'precious' } }] }, { text: answer }],
    async (client, stage) => {
      const tools = [TOOL('look_around', () => 'a room')]
      const asked = { model: stage.agentId, messages: [user('Do it')], tools }
      const { choices } = await client.chat.completions.create(asked)
      expect(choices).toMatchObject([{ finish_reason: 'stop', message: { content: expect.stringContaining(GUARDED) } }])
      expect((await stage.turns()).map(({ status }) => status)).toEqual(['waiting'])
      const said: Message = { role: 'assistant', content: choices[0]?.message.content ?? '' }
      expect((await ask(client, stage.agentId, [user('Do it'), said, user(decision)])).text).toBe(answer)
      const [turn, ...others] = await stage.turns()
      expect([turn?.status, others]).toEqual(['completed', []])
      expect(turn?.results).toMatchObject([outcome === 'error' ? { error: expect.any(String) } : { error: null }])
    },
  ),
)

it.concurrent('cannot take a tool of the service for its own, which would not need approval', () =>
  withClient([], async (client, { agentId }) => {
    const asked = { model: agentId, messages: [user('Do it')], tools: [TOOL(GUARDED, () => 'forged')] }
    await expect(client.chat.completions.create(asked)).rejects.toMatchObject({
      status: 400,
      param: 'tools.0.name',
      message: expect.stringContaining('choose another name'),
    })
  }))

it.concurrent('sends an image', () =>
  withClient([{ text: 'I see.' }], async (client, stage) => {
    const url = `data:image/png;base64,${PIXEL.toString('base64')}`
    await ask(client, stage.agentId, [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is it?' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ])
    const [turn] = await stage.turns()
    expect(turn?.asked.content).toEqual([
      expect.objectContaining({ type: 'text' }),
      expect.objectContaining({ type: expect.stringMatching(/^image/) }),
    ])
  }))

it.concurrent('gets an attempt that failed only once', () =>
  withClient(
    [
      {
        error: { status: 503, message: 'overloaded', times: 2, after_text: true, retry_after_ms: 300 },
        text: 'At last.',
      },
    ],
    async (client, stage) => {
      expect((await ask(client, stage.agentId, [user('Try')])).text).toBe('At last.')
    },
  ))

it.concurrent.each([true, false])('is told that the model failed, and does not repeat it (stream: %s)', (stream) =>
  withClient(
    [{ error: { status: 400, message: 'the prompt is too long' } }, { text: 'Fine.' }],
    async (client, stage) => {
      const question = { model: stage.agentId, messages: [user('Fail')] }
      const asking = stream ? ask(client, stage.agentId, question.messages) : client.chat.completions.create(question)
      await expect(asking).rejects.toThrow(/prompt is too long/)
      expect(stage.posts()).toBe(1)
      expect((await ask(client, stage.agentId, [user('Fail'), user('And now?')])).text).toBe('Fine.')
    },
  ),
)

it.concurrent('is told what is wrong with a request, and does not repeat it', () =>
  withClient([], async (client, stage) => {
    const wrong: [object, number][] = [
      [{ model: 'nope', messages: [user('Hi')] }, 404],
      [{ model: stage.agentId, messages: [user('Hi')], n: 2 }, 400],
      [{ model: stage.agentId, messages: [] }, 400],
    ]
    for (const [index, [body, status]] of wrong.entries()) {
      const asking = client.chat.completions.create(body as OpenAI.ChatCompletionCreateParamsNonStreaming)
      const error = await asking.catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(OpenAI.APIError)
      expect(error).toMatchObject({ status, message: expect.stringMatching(/\w+ \w+/) })
      expect(stage.posts()).toBe(index + 1)
    }
    const stranger = new OpenAI({ baseURL: stage.baseURL, apiKey: 'sk-wrong' })
    await expect(stranger.models.list()).rejects.toMatchObject({ status: 401 })
  }))

it.concurrent('loses the first answer, and repeats its request without a second turn', () =>
  withClient([{ text: 'Said once.' }], async (client, stage) => {
    stage.spoil({ after: -1, how: 'cut' }, { status: 503 })
    expect((await ask(client, stage.agentId, [user('Say it')])).text).toBe('Said once.')
    expect(stage.posts()).toBe(3)
    await stage.expectStored(['Say it', 'Said once.'])
  }))

it.concurrent.each([1, 2, 3])('loses connections after random bytes, by seed %s, and asks again', (seed) =>
  withClient([slow(2, 20)], async (client, stage) => {
    const random = createRandom(seed)
    stage.spoil(...Array.from({ length: 3 }, () => ({ after: 1 + Math.floor(random() * 1500), how: 'cut' as const })))
    const again = async (times: number): Promise<string> => {
      const asked = ask(client, stage.agentId, [user('Talk')]).then(({ text }) => text)
      return times === 0 ? asked : asked.catch(() => again(times - 1))
    }
    expect(await again(3)).toBe(slow(2).text)
    await stage.expectStored(['Talk', slow(2).text])
  }),
)

it.concurrent('goes away in mid-answer, and finds the answer in the session', () =>
  withClient([slow(1, 20), { text: 'Still here.' }], async (client, stage) => {
    const stream = await client.chat.completions.create({
      model: stage.agentId,
      messages: [user('Talk')],
      stream: true,
    })
    for await (const { choices } of stream) if (choices[0]?.delta.role !== undefined) break
    await waitFor(async () => (await stage.turns())[0]?.status === 'completed', 'the turn to end')
    await stage.expectStored(['Talk', slow(1).text])
    expect((await ask(client, stage.agentId, [user('Talk'), user('There?')])).text).toBe('Still here.')
  }))

it.concurrent('asks while another answer of the conversation is written', () =>
  withClient([slow(1, 20), { text: 'The second.' }], async (client, stage) => {
    const first = ask(client, stage.agentId, [user('First')])
    await waitFor(async () => (await stage.turns().catch(() => [])).length === 1, 'the first turn')
    const second = await ask(client, stage.agentId, [user('First'), user('Second')])
    expect([(await first).text, second.text]).toEqual([slow(1).text, 'The second.'])
    await stage.expectStored(['First', slow(1).text], ['Second', 'The second.'])
  }))

it.concurrent('has a title made without the conversation knowing of it', () =>
  withClient([{ text: 'Hello.' }, { text: 'Next.' }], async (client, stage) => {
    await ask(client, stage.agentId, [user('Hello')])
    const task = await client.chat.completions.create({
      model: stage.agentId,
      messages: [user('### Task:\nGenerate a concise, 3-5 word title')],
    })
    expect(task.choices[0]?.message.content).toEqual(expect.any(String))
    await stage.expectStored(['Hello', 'Hello.'])
  }))

it.concurrent('asks two questions without a conversation, which know nothing of each other', async () => {
  account ??= newAccount()
  const own = await account
  const stage = await openStage(own, [{ text: 'I start anew.' }])
  const client = new OpenAI({ baseURL: stage.baseURL, apiKey: own.key })
  for (const question of ['One', 'Two'])
    expect((await ask(client, stage.agentId, [user(question)])).text).toBe('I start anew.')
  await stage.close()
})
