import { call, createScriptedSession, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'
import { withClient } from '../support/temporal.ts'

const SECRETS = ['PROMPT-4711', 'QUESTION-4712', 'THOUGHT-4713', 'ANSWER-4714', 'FAILURE-4715', 'sk-KEY-4716']
const [PROMPT, QUESTION, THOUGHT, ANSWER, FAILURE, KEY = ''] = SECRETS

let service: TestService
let turnIds: string[]
beforeAll(async () => {
  service = await startService({ environment: { DEFAULT_OPENAI_API_KEY: KEY } })
  // The script is the system prompt, so its third step is text that only the prompt holds.
  const answered = { thinking: `hm ${THOUGHT}`, text: `so ${ANSWER}`, error: failing(1) }
  const id = await createScriptedSession(service.url, [answered, { error: failing() }, { text: `later ${PROMPT}` }])
  // The second one queues behind the first, whose end starts it.
  for (let turn = 0; turn < 2; turn++) {
    await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage(`why ${QUESTION}`))
  }
  await waitUntilIdle(service.url, id)
  const { body } = await call(service.url, 'GET', `/v1/sessions/${id}/turns`)
  turnIds = body.data.map((turn: { id: string }) => turn.id).reverse()
  expect(turnIds).toHaveLength(2)
})
afterAll(() => service.stop())

const failing = (times?: number) => ({
  status: 503,
  message: `no ${FAILURE}`,
  retry_after_ms: 10,
  times,
  after_text: true,
})

/** All that Temporal keeps of a turn when it has ended, as text; payloads decoded. */
async function readHistory(turnId: string) {
  return withClient(service, async (client) => {
    const handle = client.workflow.getHandle(turnId)
    const description = await waitFor(async () => {
      const found = await handle.describe()
      return found.status.name !== 'RUNNING' && found
    }, 'the workflow to end')
    const { events } = await handle.fetchHistory()
    return { status: description.status.name, events: events ?? [], text: readable([events, description.raw]) }
  })
}

function readable(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8')
  if (Array.isArray(value)) return value.map(readable).join('\n')
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .map(([key, inner]) => `${key}: ${readable(inner)}`)
    .join('\n')
}

describe("Temporal's history of a turn", () => {
  it('holds no prompt, message, answer, error text or key, however the turn went', async () => {
    for (const turnId of turnIds) {
      const { text, status } = await readHistory(turnId)
      expect(status).toBe('COMPLETED')
      // So it is the history that was searched, decoded.
      expect(text).toContain(`"sessionId":"`)
      for (const secret of SECRETS) expect(text).not.toContain(secret)
    }
  })

  it('says what happened in words', async () => {
    const [answered = ''] = turnIds
    const { text } = await readHistory(answered)
    expect(text).toContain('turn of session_')
    expect(text).toContain('reason · iteration 1')
    expect(text).toContain('the model failed; it is asked again')
  })

  it('is short', async () => {
    for (const turnId of turnIds) {
      const { events, text } = await readHistory(turnId)
      expect(events.length).toBeLessThanOrEqual(15)
      expect(text.length).toBeLessThan(20_000)
    }
  })
})
