import { call, createScriptedSession, type Json, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { expectEachSecretSet, madeUpSecrets, secretsOf } from '../support/secrets.ts'
import { startService, type TestService } from '../support/service.ts'
import { readable, withClient } from '../support/temporal.ts'
import { waitForEvent } from '../support/turns.ts'

/** Marks in every place where a caller, a model or a tool may put private content. */
const SECRETS = {
  prompt: 'PROMPT-4711',
  question: 'QUESTION-4712',
  thought: 'THOUGHT-4713',
  answer: 'ANSWER-4714',
  failure: 'FAILURE-4715',
  key: 'sk-KEY-4716',
  argument: 'ARGUMENT-4717',
  toolError: 'TOOLERROR-4718',
  unknownTool: 'UNKNOWN-TOOL-4719',
  callId: 'CALL-ID-4720',
  clientArgument: 'CLIENT-ARGUMENT-4721',
  clientResult: 'CLIENT-RESULT-4722',
  description: 'DESCRIPTION-4723',
  crash: 'SECRET-INNER-CAUSE',
  stored: 'STORED-4724',
}

let service: TestService
let sessionId: string
let agentId: string
let turnIds: string[]

const failing = (times?: number) => ({
  status: 503,
  message: `no ${SECRETS.failure}`,
  retry_after_ms: 10,
  times,
  after_text: true,
})
const steps = [
  // The script is the system prompt, so the contents of later steps are part of the prompt.
  { thinking: `hm ${SECRETS.thought}`, text: `so ${SECRETS.answer}`, error: failing(1) },
  {
    tool_calls: [
      { id: SECRETS.callId, name: 'echo', arguments: { text: SECRETS.argument } },
      { name: 'fail', arguments: { text: SECRETS.toolError } },
      { name: 'crash', arguments: {} },
      { name: 'once', arguments: { ms: 1 } },
      { name: SECRETS.unknownTool, arguments: {} },
      { name: 'ask_client', arguments: { question: SECRETS.clientArgument } },
    ],
  },
  { text: `so ${SECRETS.answer}` },
  { text: `slowly ${SECRETS.answer}`, delay_ms: 60_000 },
  { error: failing() },
  { text: `later ${SECRETS.prompt}` },
]
const definition = (name: string, more: object) => ({
  name,
  description: SECRETS.description,
  parameters: { type: 'object', description: SECRETS.description },
  ...more,
})

/**
 * Limits on the events and characters of the turn with a failure, with tools, cancelled, and failed. A cancelled turn
 * may wait for the request to cancel it, which takes four events. A model's failure is a failed activity, and has the
 * marker of the step's beginning as well.
 */
const LIMITS = [
  { events: 24, characters: 20_000 },
  { events: 60, characters: 60_000 },
  { events: 20, characters: 20_000 },
  { events: 66, characters: 40_000 },
]

const post = () =>
  call(service.url, 'POST', `/v1/sessions/${sessionId}/messages`, textMessage(`why ${SECRETS.question}`))
const statusIs = (status: string) =>
  waitFor(async () => {
    const { body } = await call(service.url, 'GET', `/v1/sessions/${sessionId}`)
    return body.status === status
  }, `the session to be ${status}`)

/** Plays one turn of each kind: answered after a failure, with tools and a client, cancelled, and failed. */
beforeAll(async () => {
  service = await startService({
    environment: {
      ...madeUpSecrets(),
      // It needs TLS, which the Temporal of tests does not speak. Temporal is the one who may know it.
      TEMPORAL_API_KEY: '',
      AUTH_IDPA_CLIENT_ID: 'client',
      AUTH_IDPB_CLIENT_ID: 'client',
      DEFAULT_OPENAI_API_KEY: SECRETS.key,
    },
    capabilities: [createLab().capability],
  })
  const tools = [
    definition('ask_client', { type: 'client_side' }),
    definition('once', { type: 'builtin', policy: 'requires_approval' }),
  ]
  sessionId = await createScriptedSession(service.url, steps, { capabilities: [{ ref: 'lab' }], tools })
  agentId = (await call(service.url, 'GET', `/v1/sessions/${sessionId}`)).body.agent_id
  for (const kind of ['keys', 'secrets'])
    await call(service.url, 'PUT', `/v1/sessions/${sessionId}/storage/${kind}/a`, { value: SECRETS.stored })
  await post()
  await waitUntilIdle(service.url, sessionId)
  await post()
  await statusIs('waitingfortoolresults')
  const { body } = await call(service.url, 'GET', `/v1/sessions/${sessionId}/turns?status=waiting`)
  const tool_results = body.data[0].pending_tool_calls.map(({ id, name }: Json) => ({
    tool_call_id: id,
    result: name === 'once' ? { approved: true } : { secret: SECRETS.clientResult },
  }))
  expect(tool_results).toHaveLength(2)
  await call(service.url, 'POST', `/v1/sessions/${sessionId}/tool-results`, { tool_results })
  await statusIs('idle')
  await post()
  await waitForEvent(service.url, sessionId, 'turn.started', 3)
  await call(service.url, 'POST', `/v1/sessions/${sessionId}/cancel`)
  await post()
  await waitFor(async () => {
    const turns = (await call(service.url, 'GET', `/v1/sessions/${sessionId}/turns`)).body.data
    turnIds = turns.map((turn: { id: string }) => turn.id).reverse()
    return turns[0].status === 'failed'
  }, 'the last turn to fail')
  const { body: session } = await call(service.url, 'GET', `/v1/sessions/${sessionId}/turns`)
  expect(session.data.map((turn: Json) => turn.status).reverse()).toEqual([
    ...['completed', 'completed', 'cancelled', 'failed'],
  ])
})
afterAll(() => service.stop())

/** Returns everything that Temporal keeps of a turn that has ended, as text with payloads decoded. */
async function readHistory(turnId: string) {
  return withClient(service, async (client) => {
    const handle = client.workflow.getHandle(turnId)
    const description = await waitFor(async () => {
      const found = await handle.describe()
      return found.status.name !== 'RUNNING' && found
    }, 'the workflow to end')
    const { events } = await handle.fetchHistory()
    const text = readable([events, description.raw])
    return { status: description.status.name, memo: description.memo, description, events: events ?? [], text }
  })
}

describe("Temporal's history of a turn", () => {
  it('holds no prompt, message, argument, result, answer, error text or key, however the turn went', async () => {
    expectEachSecretSet(
      { ...service.config, TEMPORAL_API_KEY: 'unset, see above' },
      'test/faults/temporal-history.test.ts',
    )
    const secrets = [...Object.values(SECRETS), ...secretsOf(service.config)]
    const statuses: string[] = []
    for (const turnId of turnIds) {
      const { text, status } = await readHistory(turnId)
      statuses.push(status)
      // Shows that the decoded history was searched.
      expect(text).toContain(`"sessionId":"`)
      for (const secret of secrets) expect(text).not.toContain(secret)
    }
    expect(statuses).toEqual(['COMPLETED', 'COMPLETED', 'CANCELLED', 'FAILED'])
  })

  it('has the ids as the API writes them', async () => {
    const { body } = await call(service.url, 'GET', `/v1/sessions/${sessionId}`)
    for (const turnId of turnIds) {
      const { events } = await readHistory(turnId)
      const [started] = events.flatMap((event) => event.workflowExecutionStartedEventAttributes?.input ?? [])
      expect(readable(started)).toContain(JSON.stringify({ organizationId: body.organization_id, sessionId, turnId }))
    }
  })

  it('says what happened in words', async () => {
    const [answered = '', withTools = ''] = turnIds
    const { text } = await readHistory(answered)
    expect(text).toContain('turn of session_')
    expect(text).toContain('reason · iteration 1')
    const tools = await readHistory(withTools)
    for (const name of ['echo', 'fail', 'crash', 'once']) expect(tools.text).toContain(`tool · ${name}`)
    expect(tools.text).toContain('reason · llmsim-script · iteration 2')
  })

  it("says once why a turn failed, in words that are the service's own", async () => {
    const { events } = await readHistory(turnIds.at(-1) ?? '')
    const failures = events.flatMap((event) => event.workflowExecutionFailedEventAttributes ?? [])
    expect(failures).toHaveLength(1)
    const failure = failures[0]?.failure
    expect(failure?.message).toBe("the turn failed; its session's events say why")
    expect(failure?.applicationFailureInfo).toMatchObject({ type: 'llm_error', nonRetryable: true })
    expect(failure?.cause ?? null).toBeNull()
    expect(failure?.applicationFailureInfo?.details?.payloads ?? []).toEqual([])
  })

  it('is found by session, agent and organization', async () => {
    const [turnId = ''] = turnIds
    const { memo } = await readHistory(turnId)
    const { body } = await call(service.url, 'GET', `/v1/sessions/${sessionId}`)
    const labels = { session_id: sessionId, agent_id: agentId, organization_id: body.organization_id }
    expect(memo).toEqual(labels)
    const query = `SessionId = '${sessionId}' AND AgentId = '${agentId}' AND OrganizationId = '${body.organization_id}'`
    await waitFor(
      () => withClient(service, async (client) => (await client.workflow.count(query)).count === turnIds.length),
      'all turns to be found',
    )
  })

  it('is short', async () => {
    for (const [index, turnId] of turnIds.entries()) {
      const { events, text } = await readHistory(turnId)
      // A workflow task that times out on a slow machine adds three events.
      const late = events.filter((event) => event.workflowTaskTimedOutEventAttributes).length
      expect(events.length - 3 * late).toBeLessThanOrEqual(LIMITS[index]?.events ?? 0)
      expect(text.length).toBeLessThan(LIMITS[index]?.characters ?? 0)
    }
  })
})
