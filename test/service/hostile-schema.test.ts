import { watchEventLoop } from '../support/event-loop.ts'
import { createScriptedSession, type Json, waitUntilIdle } from '../support/http.ts'
import { expectSoundRecord } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { clientTool, post, postAndAsk } from '../support/turns.ts'

let service: TestService
let url: string
beforeAll(async () => {
  service = await startService()
  url = service.url
})
afterAll(() => service.stop())

const createHostileSession = (pattern: string, text: string) => {
  const tool_calls = Array.from({ length: 128 }, () => ({ name: 'ask', arguments: { text } }))
  const tools = [clientTool('ask', { text: { type: 'string', pattern } })]
  return createScriptedSession(url, [{ tool_calls }, { text: 'done' }], { tools })
}

describe('a model answer whose calls take forever to check', () => {
  it('is refused at the first attempt, and nothing else waits', async () => {
    const hostile = await createHostileSession('^(a+)+$', `${'a'.repeat(799)}!`)
    const other = await createScriptedSession(
      url,
      [{ tool_calls: [{ name: 'ask', arguments: {} }] }, { text: 'done' }],
      { tools: [clientTool('ask')] },
    )
    const loop = watchEventLoop()
    await post(url, hostile)
    expect((await postAndAsk(url, other)).pending_tool_calls).toHaveLength(1)
    const events = await waitUntilIdle(url, hostile)
    // Heartbeats are sent every second and count as missed after four seconds.
    expect(loop.stop().busyMs).toBeLessThan(3000)
    expectSoundRecord(events)
    // One for each of the two model calls, so no attempt was repeated.
    expect(events.filter(({ type }) => type === 'output.message.started')).toHaveLength(2)
    expect(events.at(-2)).toMatchObject({ type: 'turn.completed', data: { iterations: 2 } })
    const completed = events.filter(({ type }: Json) => type === 'tool.completed')
    expect(completed.map(({ data }) => [data.status, data.error])).toEqual(
      Array(128).fill(['error', 'The arguments could not be checked in time; pass simpler ones.']),
    )
  })

  it('is passed to the client if the pattern only looks slow', async () => {
    const id = await createHostileSession('^(a?){1000}$', 'a'.repeat(800))
    expect((await postAndAsk(url, id)).pending_tool_calls).toHaveLength(128)
  })
})

describe("another organization's flood of heavy schemas", () => {
  it('delays neither a write nor a turn', async () => {
    const evil = { propertyNames: { pattern: '^(a+)+$' } }
    const job = { calls: [{ schema: evil, args: `{"${'a'.repeat(100)}!":1}` }] }
    const { schemas } = service.platform.deps.threads
    let ended = 0
    const flood = Array.from({ length: 8 }, () =>
      schemas.run(job, 1000, undefined, { owner: 'another organization' }).then(() => ended++),
    )
    const steps = [{ tool_calls: [{ name: 'ask', arguments: {} }] }, { text: 'done' }]
    const id = await createScriptedSession(url, steps, { tools: [clientTool('ask')] })
    expect((await postAndAsk(url, id)).pending_tool_calls).toHaveLength(1)
    expect(ended).toBeLessThan(flood.length / 2)
    await Promise.all(flood)
  })
})
