import { randomUUID } from 'node:crypto'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai7'
import { slow } from './ai/scenario.ts'
import { newAccount } from './ai/stage.ts'
import { type Stage, withStage } from './openai/stage.ts'

let account: ReturnType<typeof newAccount> | undefined
const withAgent = async (steps: object[], check: (stage: Stage, key: string) => Promise<void>): Promise<void> => {
  account ??= newAccount()
  const own = await account
  await withStage(own, steps, (stage) => check(stage, own.key))
}

const ASK = { tool_calls: [{ name: 'look_around', arguments: {} }] }
const FAILURE = { error: { status: 400, message: 'the prompt is too long' } }

describe("a provider of the AI SDK's openai-compatible", () => {
  const modelOf = ({ baseURL, agentId }: Stage, apiKey: string) =>
    createOpenAICompatible({
      name: 'agents',
      baseURL,
      apiKey,
      headers: { 'X-Session-Id': randomUUID() },
      includeUsage: true,
    })(agentId)

  it.concurrent('streams text and thinking', () =>
    withAgent([{ thinking: 'Hm.', ...slow(1, 40) }], async (stage, key) => {
      const result = streamText({ model: modelOf(stage, key), prompt: 'Hello' })
      let text = ''
      for await (const delta of result.textStream) text += delta
      expect([text, (await result.reasoningText)?.trim(), await result.finishReason]).toEqual([
        slow(1).text,
        'Hm.',
        'stop',
      ])
      expect((await result.usage).totalTokens).toBeGreaterThan(0)
      await stage.expectStored(['Hello', text])
    }))

  it.concurrent('runs its tools, twice', () =>
    withAgent([ASK, ASK, { text: 'Two rooms.' }], async (stage, key) => {
      let rooms = 0
      const look_around = tool({ inputSchema: jsonSchema({ type: 'object' }), execute: () => `room ${++rooms}` })
      const model = modelOf(stage, key)
      const { text, steps } = await generateText({
        model,
        prompt: 'Look',
        tools: { look_around },
        stopWhen: stepCountIs(5),
      })
      expect([text, steps.length, rooms]).toEqual(['Two rooms.', 3, 2])
      expect(JSON.stringify((await stage.turns())[0]?.results)).toMatch(/room 1.*room 2/)
      expect(await stage.turns()).toHaveLength(1)
    }))

  it.concurrent('is told of a failure, and does not repeat its request', () =>
    withAgent([FAILURE], async (stage, key) => {
      await expect(generateText({ model: modelOf(stage, key), prompt: 'Fail' })).rejects.toThrow(/prompt is too long/)
      expect(await stage.turns()).toHaveLength(1)
    }))
})

describe('ChatOpenAI of LangChain', () => {
  const modelOf = ({ baseURL, agentId }: Stage, apiKey: string) =>
    new ChatOpenAI({
      model: agentId,
      apiKey,
      configuration: { baseURL, defaultHeaders: { 'X-Session-Id': randomUUID() } },
    })

  it.concurrent('streams and invokes in one conversation', () =>
    withAgent([slow(1, 40), { text: 'Good night.' }], async (stage, key) => {
      const model = modelOf(stage, key)
      let text = ''
      for await (const chunk of await model.stream('Hello')) text += chunk.text
      expect(text).toBe(slow(1).text)
      const answer = await model.invoke([new HumanMessage('Hello'), ['assistant', text], new HumanMessage('Bye')])
      expect([answer.text, (answer.usage_metadata?.total_tokens ?? 0) > 0]).toEqual(['Good night.', true])
      await stage.expectStored(['Hello', text], ['Bye', 'Good night.'])
    }))

  it.concurrent('runs its tools', () =>
    withAgent([ASK, { text: 'A room.' }], async (stage, key) => {
      const schema = { type: 'object', properties: {} }
      const model = modelOf(stage, key).bindTools([
        { type: 'function', function: { name: 'look_around', parameters: schema } },
      ])
      const asking = await model.invoke('Look')
      const [call] = asking.tool_calls ?? []
      expect(call?.name).toBe('look_around')
      const output = new ToolMessage({ tool_call_id: call?.id ?? '', content: 'a room' })
      expect((await model.invoke([new HumanMessage('Look'), asking, output])).text).toBe('A room.')
      expect(JSON.stringify((await stage.turns())[0]?.results)).toContain('a room')
    }))

  it.concurrent('is told of a failure, and does not repeat its request', () =>
    withAgent([FAILURE], async (stage, key) => {
      const model = modelOf(stage, key)
      await expect(model.invoke('Fail')).rejects.toThrow(/prompt is too long/)
      expect(await stage.turns()).toHaveLength(1)
    }))
})
