import { createScriptedSession, createSession, type Json, waitUntilIdle } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { type FakeOpenai, startFakeOpenai } from '../support/providers/chat-completions.ts'
import { answerOf, compactTypes, expectSoundRecord, firstTurnTypes, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { post, waitForEvent } from '../support/turns.ts'

const WORDS = Array.from({ length: 12 }, (_, index) => ` word${index}`)
/** Longer than the heartbeat timeout and the time limit of a workflow task together with their retries. */
const BLOCKED_MS = 6000

const lab = createLab()
let provider: FakeOpenai
let service: TestService
beforeAll(async () => {
  provider = await startFakeOpenai(() => ({ text: WORDS, pauseMs: 200 }))
  const environment = { DEFAULT_OPENAI_API_KEY: 'sk-test', DEFAULT_OPENAI_BASE_URL: provider.baseUrl }
  service = await startService({ capabilities: [lab.capability], environment, heartbeatThread: true })
})
afterAll(async () => {
  await service.stop()
  await provider.close()
})

const startsOf = (events: Json[]): number => typesOf(events).filter((type) => type === 'output.message.started').length

describe('a process whose event loop is blocked for seconds', () => {
  it('keeps its turns, in whatever phase they are, and no model or tool is asked twice', async () => {
    const { url } = service
    const streaming = await createSession(url)
    await post(url, streaming)
    await waitForEvent(url, streaming, 'output.message.delta')
    const block = { tool_calls: [{ name: 'block', arguments: { ms: BLOCKED_MS } }] }
    const blocking = await createScriptedSession(url, [block, { text: 'done' }], { capabilities: [{ ref: 'lab' }] })
    const others = await Promise.all(Array.from({ length: 8 }, () => createSession(url)))
    await post(url, blocking)
    await Promise.all(others.map((id) => post(url, id)))

    for (const id of [streaming, ...others]) {
      const events = await waitUntilIdle(url, id)
      expectSoundRecord(events)
      expect(compactTypes(events)).toEqual(firstTurnTypes())
      expect(answerOf(events)).toBe(WORDS.join(''))
    }
    const blocked = await waitUntilIdle(url, blocking)
    expectSoundRecord(blocked)
    expect(startsOf(blocked)).toBe(2)
    expect(lab.runs).toHaveLength(1)
    expect(provider.requests).toHaveLength(1 + others.length)
  })
})
