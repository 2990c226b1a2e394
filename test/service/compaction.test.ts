import { call, createScriptedSession, createSession, type Json, textMessage, waitUntilIdle } from '../support/http.ts'
import { expectSoundRecord, textOf } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

/** Context size of the simulated models, in tokens of four characters. */
const CONTEXT_TOKENS = 128_000

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

async function say(id: string, text: string): Promise<Json[]> {
  const { status } = await call(api, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage(text))
  expect(status).toBe(200)
  return waitUntilIdle(api, id)
}

const generations = (events: Json[]): Json[] =>
  events.filter((event) => event.type === 'llm.generation').map((event) => event.data)

describe('a conversation that outgrows its model', () => {
  it('loses its oldest messages, with a notice', async () => {
    const id = await createSession(api)
    await say(id, `first ${'word '.repeat(70_000)}`)
    const events = await say(id, `second ${'word '.repeat(70_000)}`)
    expectSoundRecord(events)
    const [before, after] = generations(events)
    expect(before.metadata.compaction ?? null).toBeNull()
    const { compaction } = after.metadata
    expect(compaction).toMatchObject({ compacted: true, duration_ms: expect.any(Number) })
    expect(compaction.input_tokens_before).toBeGreaterThan(CONTEXT_TOKENS)
    expect(compaction.input_tokens_after).toBeLessThan(CONTEXT_TOKENS)
    const texts = after.messages.map(textOf)
    expect(texts[0]).toContain('left out')
    expect(texts.at(-1)).toMatch(/^second/)
    expect(texts.some((text: string) => text.startsWith('first'))).toBe(false)
    expect(JSON.stringify(after)).not.toContain('thresholds')
  })

  it("loses old tool results first, and keeps the last step's", async () => {
    const big = (n: number) => ({ tool_calls: [{ name: 'repeat', arguments: { text: `${n}xxx `, times: 40_000 } }] })
    const steps = [big(1), big(2), big(3), { text: 'done' }]
    const id = await createScriptedSession(api, steps, { capabilities: [{ ref: 'lab' }] })
    const events = await say(id, 'Go')
    expectSoundRecord(events)
    const last = generations(events).at(-1)
    const results = last.messages
      .filter((message: Json) => message.role === 'tool_result')
      .map((message: Json) => JSON.stringify(message.content[0].result))
    expect(results[0]).toContain('removed to save space')
    expect(results.at(-1)).toContain('3xxx')
    expect(last.metadata.compaction.compacted).toBe(true)
  })

  it('is the same in a live stream and in the list', async () => {
    const id = await createSession(api)
    await say(id, `first ${'word '.repeat(70_000)}`)
    const answer = await fetch(`${api.url}/v1/sessions/${id}/messages`, {
      method: 'POST',
      headers: { ...api.headers, 'Content-Type': 'application/json', Accept: 'text/event-stream' },
      body: JSON.stringify(textMessage(`second ${'word '.repeat(70_000)}`)),
    })
    const frames = (await answer.text()).split('\n').filter((line) => line.startsWith('data: {"id"'))
    const live = frames.map((line) => JSON.parse(line.slice('data: '.length)))
    const listed = await waitUntilIdle(api, id)
    expect(generations(live).at(-1)).toEqual(generations(listed).at(-1))
  })
})
