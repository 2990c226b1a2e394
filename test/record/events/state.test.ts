import type { Deps } from '../../../domain/deps.ts'
import { appendEvents, type NewEvent, type Writer } from '../../../domain/events/log/append.ts'
import { newUuid } from '../../../domain/kit/ids.ts'
import { call, createSession, type Json, textMessage } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { startService, type TestService } from '../../support/service.ts'
import { forgetActivation } from '../../support/turns.ts'

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
})
afterAll(() => service.stop())

const get = async (path: string): Promise<Json> => (await call(service.url, 'GET', path)).body

async function createTurn() {
  const id = await createSession(service.url, { name: 'Counted' })
  const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
  await forgetActivation(deps, toUuid(id))
  const writer: Writer = { sessionId: toUuid(id), turnId: toUuid(body.id) }
  const turnPath = `/v1/sessions/${id}/turns/${body.id.replace('message', 'turn')}`
  return {
    append: (...events: NewEvent[]) => appendEvents(deps, writer, events),
    session: () => get(`/v1/sessions/${id}`),
    turn: () => get(turnPath),
    agent: async () => get(`/v1/agents/${(await get(`/v1/sessions/${id}`)).agent_id}`),
  }
}

const usage = { input_tokens: 10, output_tokens: 3, cache_read_tokens: 2, cache_creation_tokens: 1 }
const reasonStarted = (iteration: number): NewEvent => ({
  type: 'reason.started',
  step: `reason:${iteration}`,
  data: {},
})
const reasonCompleted = (iteration: number): NewEvent => ({
  type: 'reason.completed',
  step: `reason:${iteration}`,
  data: { success: true, has_tool_calls: false, tool_call_count: 0, usage },
})
const answered = (text: string): NewEvent => ({
  type: 'output.message.completed',
  step: 'reason:1',
  data: { message: { id: `message_${newUuid()}`, role: 'agent', content: [{ type: 'text', text }] } },
})
const event = (type: NewEvent['type'], data: Record<string, unknown> = {}): NewEvent => ({ type, data })

describe('the state of the resources', () => {
  it('is as the events announced', async () => {
    const { append, session, turn } = await createTurn()
    expect(await session()).toMatchObject({
      status: 'started',
      preview: 'Hello',
      output_preview: null,
      started_at: null,
    })
    expect(await turn()).toMatchObject({ status: 'queued', iterations: 0, started_at: null, finished_at: null })

    const begun = await append(event('session.started'), event('session.activated'), event('turn.started'))
    const at = begun.outcome === 'appended' && begun.at.toISOString()
    expect(await session()).toMatchObject({ status: 'active', started_at: at, finished_at: null })
    expect(await turn()).toMatchObject({ status: 'active', started_at: at })

    await append(event('tool.call_requested'))
    expect(await session()).toMatchObject({ status: 'waitingfortoolresults' })
    expect(await turn()).toMatchObject({ status: 'waiting' })

    await append(reasonStarted(1), answered('x'.repeat(300)))
    expect(await session()).toMatchObject({ status: 'active', output_preview: 'x'.repeat(200) })
    expect(await turn()).toMatchObject({ status: 'active', iterations: 1 })

    const ended = await append(event('turn.completed'), event('session.idled'))
    const end = ended.outcome === 'appended' && ended.at.toISOString()
    expect(await session()).toMatchObject({ status: 'idle', started_at: at, finished_at: end })
    expect(await turn()).toMatchObject({ status: 'completed', started_at: at, finished_at: end })
  })

  it('counts tokens and iterations once, however often they are recorded', async () => {
    const { append, session, turn, agent } = await createTurn()
    for (let time = 0; time < 3; time++) {
      await append(reasonStarted(1), reasonCompleted(1))
      await append(reasonStarted(2), reasonCompleted(2))
    }
    const twice = { input_tokens: 20, output_tokens: 6, cache_read_tokens: 4, cache_creation_tokens: 2 }
    expect(await turn()).toMatchObject({ iterations: 2, usage: twice })
    expect(await session()).toMatchObject({ usage: twice })
    expect(await agent()).toMatchObject({ usage: twice })
  })

  it('shows why a turn failed', async () => {
    const { append, session, turn } = await createTurn()
    await append(event('turn.failed', { error: 'It broke.', error_code: 'llm_error' }), event('session.idled'))
    expect(await turn()).toMatchObject({ status: 'failed', error: 'It broke.', error_code: 'llm_error' })
    expect(await session()).toMatchObject({ status: 'idle' })
  })

  it('is cancelled for a cancelled turn', async () => {
    const { append, turn } = await createTurn()
    await append(event('turn.cancelled', { reason: 'enough' }), event('session.idled'))
    expect(await turn()).toMatchObject({ status: 'cancelled', error: null, error_code: null })
  })
})
