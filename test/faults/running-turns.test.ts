import { workflowEnd } from '../support/cancelling.ts'
import { call, createScriptedSession, createSession, waitFor, waitUntilIdle } from '../support/http.ts'
import { killProcesses } from '../support/process.ts'
import { chatCompletions, questionOf } from '../support/providers/chat-completions.ts'
import { startProvider } from '../support/providers/scripted-server.ts'
import { expectSoundRecord } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { withWorkflow } from '../support/temporal.ts'
import { cancel, listTurns, MUTE, post, turnIdOf } from '../support/turns.ts'
import { createWorkerPool } from '../support/workers.ts'

/** Turns of an organization that run at once. */
const CAP = 3
const AGENT_CAP = 2
const FIRST = 'free 0'
const isCapped = (question: string) => question.startsWith('capped')

let service: TestService
beforeAll(async () => {
  const environment = { ALLOW_PRIVATE_NETWORK: 'true', MAX_RUNNING_TURNS_PER_ORGANIZATION: String(CAP) }
  service = await startService({ worker: false, environment })
})
afterAll(async () => {
  await killProcesses()
  await service.stop()
})

/**
 * Provider that takes a while for each answer, and counts the calls that are open at once, in all and by their agent. The
 * first call of the first turn gets no answer, and the capped agent's calls wait until as many are open as may be.
 */
async function startSlowProvider() {
  const asked: string[] = []
  const open: string[] = []
  const most = new Map<string, number>()
  const provider = await startProvider(chatCompletions, async (request) => {
    const question = questionOf(request)
    if (!asked.includes(question)) asked.push(question)
    open.push(question)
    void request.closed.then(() => open.splice(open.indexOf(question), 1))
    for (const [of, count] of [
      ['all', open.length],
      ['capped', open.filter(isCapped).length],
    ] as const)
      most.set(of, Math.max(most.get(of) ?? 0, count))
    if (question === FIRST && provider.requests.filter((one) => questionOf(one) === FIRST).length === 1) return 'silent'
    if (isCapped(question))
      await waitFor(async () => (most.get('capped') ?? 0) >= AGENT_CAP, 'calls of the capped agent')
    return { text: ['One, ', 'two, ', 'three.'], pauseMs: 100 }
  })
  const settings = { name: 'Slow', provider_type: 'openai_completions', base_url: provider.baseUrl, api_key: 'sk-slow' }
  const { body: added } = await call(service.url, 'POST', '/v1/llm-providers', settings)
  const path = `/v1/llm-providers/${added.id}/models`
  const { body: model } = await call(service.url, 'POST', path, { model_id: 'slow', display_name: 'Slow' })
  return { asked, open, most, modelId: model.id, close: provider.close }
}

it('runs as many turns at once as an organization and an agent may, in the order of their messages, through a kill', async () => {
  const pool = createWorkerPool(service, 2)
  const provider = await startSlowProvider()
  try {
    await pool.fill()
    const agent = { default_model_id: provider.modelId }
    const sessions = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        createSession(service.url, index % 2 === 0 ? agent : { ...agent, limits: { max_running_turns: CAP } }),
      ),
    )
    const { body: capped } = await call(service.url, 'POST', '/v1/agents', {
      ...{ name: 'Capped', system_prompt: 'Help.', ...agent, limits: { max_running_turns: AGENT_CAP } },
    })
    for (let index = 0; index < 4; index++)
      sessions.push((await call(service.url, 'POST', '/v1/sessions', { agent_id: capped.id })).body.id)
    const questions = sessions.map((_, index) => `${index < 12 ? 'free' : 'capped'} ${index}`)
    const turns: string[] = []
    for (const [index, id] of sessions.entries()) turns.push(turnIdOf(await post(service.url, id, questions[index])))
    // The process that asks it for the first time must be killed.
    await waitFor(async () => provider.asked.includes(FIRST), 'the first call')
    await pool.killRunner(turns[0] ?? '')

    for (const id of sessions) expectSoundRecord(await waitUntilIdle(service.url, id))
    expect(Object.fromEntries(provider.most)).toEqual({ all: CAP, capped: AGENT_CAP })
    // Turns that are admitted together may come in any order.
    for (const [index, question] of questions.entries())
      expect(provider.asked.indexOf(question)).toBeGreaterThanOrEqual(index - CAP + 1)
    expect(await service.platform.deps.db.turn.count({ where: { admission: { not: null } } })).toBe(0)
  } finally {
    await pool.killAll()
    await provider.close()
  }
})

it('shows in Temporal that a turn waits for a place, ends its workflow with it, and begins the next one', async () => {
  const pool = createWorkerPool(service, 1)
  await pool.fill()
  const create = () => createScriptedSession(service.url, [MUTE])
  const sessions = await Promise.all(Array.from({ length: CAP + 2 }, create))
  const turns: string[] = []
  for (const [index, id] of sessions.entries()) {
    turns.push(turnIdOf(await post(service.url, id)))
    if (index < CAP)
      await waitFor(async () => (await listTurns(service.url, id))[0].status === 'active', 'a turn to have its place')
  }
  const [first = '', , , waiting = '', last = ''] = sessions
  const waitingTurn = turns[CAP] ?? ''
  await waitFor(
    () =>
      withWorkflow(service, waitingTurn, async (workflow) => {
        const details = await workflow.query<string>('__temporal_workflow_metadata').then(JSON.stringify)
        if (details.includes('waits for a place: as many turns of the agent or the organization run as may'))
          return true
        // On a slow machine its step is an activity, which comes again.
        const { raw } = await workflow.describe()
        return raw.pendingActivities?.some(
          ({ lastFailure }) => lastFailure?.applicationFailureInfo?.type === 'waits_for_place',
        )
      }).catch(() => false),
    'the workflow to say that it waits',
  )
  expect(await listTurns(service.url, waiting)).toMatchObject([{ status: 'queued', started_at: null }])
  await cancel(service.url, waiting)
  expect(await workflowEnd(service, waitingTurn)).toBe('CANCELLED')
  expect(await listTurns(service.url, last)).toMatchObject([{ status: 'queued' }])
  await call(service.url, 'DELETE', `/v1/sessions/${first}`)
  await waitFor(async () => (await listTurns(service.url, last))[0].status === 'active', 'the last turn to begin')
  for (const id of sessions.slice(1)) await cancel(service.url, id)
  expect(await service.platform.deps.db.turn.count({ where: { admission: { not: null } } })).toBe(0)
  await pool.killAll()
})
