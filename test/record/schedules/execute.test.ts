import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createAgent } from '../../../domain/agents/create.ts'
import type { Deps } from '../../../domain/deps.ts'
import { asUuid, newUuid, toId } from '../../../domain/kit/ids.ts'
import { disableSchedule } from '../../../domain/schedules/disable.ts'
import { cancelExecution, endExecution } from '../../../domain/schedules/executions/end-execution.ts'
import { execute } from '../../../domain/schedules/executions/execute.ts'
import { getExecution } from '../../../domain/schedules/executions/executions.ts'
import { encryptHeaders } from '../../../domain/schedules/targets/headers.ts'
import { patchSchedule } from '../../../domain/schedules/update.ts'
import { createSession } from '../../../domain/sessions/create.ts'
import { failTurn } from '../../../domain/turns/control/fail-turn.ts'
import type { Prisma, Schedule } from '../../../prisma/generated/client.ts'
import { ANYBODY, withWorkflows } from '../../support/by-hand.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { toUuid } from '../../support/ids.ts'
import { insertSchedule } from '../../support/schedule-rows.ts'
import { startService, type TestService } from '../../support/service.ts'

type Received = {
  id: string | undefined
  method: string | undefined
  body: string
  headers: IncomingMessage['headers']
}

let service: TestService
let deps: Deps
const server = createServer()
const received: Received[] = []
/** What is answered by the path, and the paths whose answer does not end. */
const answers = new Map<string, string>()
const hanging = new Set(['/200/hangs'])
let url: string

beforeAll(async () => {
  service = await startService({ worker: false, environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
  deps = { ...withWorkflows(service.platform.deps, { startTurn: async () => {} }), clock: createFakeClock(60_000) }
  server.on('request', async (request, response) => {
    const { method, headers } = request
    received.push({ id: String(headers['idempotency-key']), method, headers, body: await text(request) })
    const [, status = '200'] = (request.url ?? '').split('/')
    response.writeHead(Number(status), { location: '/200' })
    if (hanging.has(request.url ?? '')) return response.write('The beginning')
    response.end(answers.get(request.url ?? '') ?? 'answer')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  await service.stop()
  server.closeAllConnections()
  server.close()
})

type NewSchedule = Partial<Prisma.ScheduleCreateManyInput>

/** Creates an execution that is yet to run. */
async function createExecution(given: NewSchedule, state: Partial<Prisma.ScheduleExecutionUncheckedCreateInput> = {}) {
  const schedule = await insertSchedule(deps, given)
  const { id: scheduleId, organizationId } = schedule
  const executionId = newUuid()
  const scheduledAt = new Date()
  await deps.db.scheduleExecution.create({
    data: { id: executionId, scheduleId, organizationId, scheduledAt, status: 'pending', ...state },
  })
  return { schedule, place: { organizationId, executionId } }
}

type CreatedExecution = Awaited<ReturnType<typeof createExecution>>['place']
const run = (place: CreatedExecution) => execute(deps, place, new AbortController().signal)
const read = ({ executionId }: CreatedExecution) =>
  deps.db.scheduleExecution.findUniqueOrThrow({ where: { id: executionId } })
const readSchedule = ({ id }: Schedule) => deps.db.schedule.findUniqueOrThrow({ where: { id } })
const requestsOf = ({ executionId }: CreatedExecution) => received.filter(({ id }) => id === executionId)

const request = (path: string, more: object = {}) => ({
  targetName: 'http_request',
  targetInput: { url: `${url}${path}`, method: 'GET', headers: {}, ...more },
})
const message = (targetInput: Prisma.InputJsonObject) => ({
  targetType: 'workflow',
  targetName: 'session_message',
  targetInput: { message: 'Good morning', ...targetInput },
})

const SECRET = 'planted"header-value'
const secretAnswer = `${SECRET} ${JSON.stringify({ SECRET })}${'x'.repeat(1980)}${SECRET}${'y'.repeat(100)}`
const secretShown = `[hidden] {"SECRET":"[hidden]"}${'x'.repeat(1980)}`

describe('http_request', () => {
  it('sends method, headers and body with the id of the execution, once', async () => {
    const id = newUuid()
    const { place } = await createExecution({
      id,
      name: id,
      ...request('/204', { method: 'POST', headers: { 'X-Token': '***' }, body: { say: 'hello' } }),
      targetHeaders: encryptHeaders(deps, id, { 'X-Token': 'planted-header-value' }),
    })
    expect(await run(place)).toEqual({ outcome: 'completed' })
    expect(await run(place)).toEqual({ outcome: 'completed' })
    const [sent, ...others] = requestsOf(place)
    expect(others).toEqual([])
    expect(sent).toMatchObject({ method: 'POST', body: '{"say":"hello"}' })
    expect(sent?.headers).toMatchObject({ 'x-token': 'planted-header-value', 'content-type': 'application/json' })
    const { status, startedAt, completedAt } = await read(place)
    expect(status).toBe('completed')
    expect(completedAt?.getTime()).toBeGreaterThanOrEqual(startedAt?.getTime() ?? Number.POSITIVE_INFINITY)
  })

  const policy = { max_attempts: 3, initial_interval_ms: 100, max_interval_ms: 150, backoff_coefficient: 2 }
  it.each([
    [
      '503, with a policy, is tried three times',
      '/503',
      policy,
      [100, 150],
      'The server answered with the status 503.',
    ],
    ['503 without a policy is final', '/503', null, [], 'The server answered with the status 503.'],
    ['404 is final', '/404', policy, [], 'The server answered with the status 404.'],
    ['a redirect is final', '/302', policy, [], /redirects/],
  ])('that is answered with %s', async (_title, path, retryPolicy, delays, error) => {
    const { place } = await createExecution({ ...request(path), ...(retryPolicy && { retryPolicy }) })
    for (const [index, afterMs] of delays.entries()) {
      expect(await run(place)).toEqual({ outcome: 'retry', failures: index + 1, afterMs })
    }
    expect(await run(place)).toEqual({ outcome: 'failed' })
    expect((await read(place)).error).toMatch(error)
    expect(requestsOf(place)).toHaveLength(delays.length + 1)
  })

  it.each([
    ['a long text, cut before a character', '/200/long', `${'x'.repeat(2047)}ÿ${'y'.repeat(3000)}`, 'x'.repeat(2047)],
    ['its secrets, whole, in JSON and cut', '/503/secret', secretAnswer, secretShown],
    ['what cannot be stored', '/404/nul', 'a\0b', 'a\ufffdb'],
    ['nothing', '/204', '', ''],
    ['the received part of an answer that does not end', '/200/hangs', '', 'The beginning'],
  ])('keeps the status and the beginning of the answer: %s', async (_title, path, answer, kept) => {
    answers.set(path, answer)
    const id = newUuid()
    const sent = request(path, { headers: { Authorization: '***' } })
    const targetHeaders = encryptHeaders(deps, id, { Authorization: `Bearer ${SECRET}` })
    const { place } = await createExecution({ id, name: id, ...sent, targetHeaders })
    await run(place)
    const { http_status, answer: shown } = await getExecution(deps, ANYBODY, asUuid(place.executionId))
    expect([http_status, shown]).toEqual([Number(path.split('/')[1]), kept])
  })

  it('has no answer of an earlier attempt', async () => {
    const { place, schedule } = await createExecution({ ...request('/503'), retryPolicy: { max_attempts: 2 } })
    await run(place)
    expect(await read(place)).toMatchObject({ httpStatus: 503, answer: 'answer' })
    await deps.db.schedule.update({ where: { id: schedule.id }, data: request('/302') })
    expect(await run(place)).toEqual({ outcome: 'failed' })
    expect(await read(place)).toMatchObject({ httpStatus: null, answer: null })
  })

  it('to a private address fails where those are not called', async () => {
    const { place } = await createExecution(request('/200'))
    const guarded = { ...deps, outgoing: { allowPrivateNetwork: false } }
    expect(await execute(guarded, place, new AbortController().signal)).toEqual({ outcome: 'failed' })
    expect(requestsOf(place)).toEqual([])
    expect((await read(place)).error).toMatch(/not on the public internet/)
  })

  const lost = { status: 'running', attempts: 1 } as const
  it.each([
    ['GET is sent again', { method: 'GET' }, null, 'completed', 1],
    ['POST is not, as nobody knows whether it arrived', { method: 'POST' }, null, 'failed', 0],
    ['POST with a retry policy is sent again', { method: 'POST' }, { max_attempts: 2 }, 'completed', 1],
  ])('whose worker died under way: %s', async (_title, how, retryPolicy, status, requests) => {
    const { place } = await createExecution({ ...request('/200', how), ...(retryPolicy && { retryPolicy }) }, lost)
    expect(await run(place)).toEqual({ outcome: status })
    expect(requestsOf(place)).toHaveLength(requests)
  })

  it('is given up when its worker has died too often', async () => {
    const { place } = await createExecution(request('/200'), { status: 'running', attempts: 21 })
    expect(await run(place)).toEqual({ outcome: 'failed' })
    expect(requestsOf(place)).toEqual([])
  })
})

describe('session_message', () => {
  it('posts one message, whose turn ends the execution', async () => {
    const { id } = await createSession(deps, ANYBODY, {})
    const { place } = await createExecution(message({ session_id: id }))
    for (let time = 0; time < 30; time++) expect(await run(place)).toEqual({ outcome: 'waits' })
    const turn_id = toId('turn', place.executionId)
    const execution = await getExecution(deps, ANYBODY, asUuid(place.executionId))
    expect(execution).toMatchObject({ turn_id, session_id: id, http_status: null, answer: null })
    const sessionId = asUuid<'session'>(
      (await deps.db.turn.findUniqueOrThrow({ where: { id: place.executionId } })).sessionId,
    )
    expect(toId('session', sessionId)).toBe(id)
    expect(await deps.db.turn.count({ where: { sessionId } })).toBe(1)
    await failTurn(deps, { organizationId: place.organizationId, sessionId, turnId: place.executionId }, 1, 'no_model')
    expect(await run(place)).toEqual({ outcome: 'failed' })
    const { error, noticeDueAt } = await read(place)
    expect(error).toBe('No model is available for this turn.')
    expect(noticeDueAt).not.toBeNull()
  })

  it.each([
    ['noop', { targetName: 'noop', targetInput: {} }],
    ['another session', { targetInput: { session_id: toId('session', newUuid()), message: 'Bye' } }],
  ])('waits for the turn that it has posted, also when the target has become %s', async (_title, data) => {
    const { id } = await createSession(deps, ANYBODY, {})
    const { place, schedule } = await createExecution(message({ session_id: id }))
    await run(place)
    await deps.db.schedule.update({ where: { id: schedule.id }, data })
    expect(await run(place)).toEqual({ outcome: 'waits' })
    expect(await read(place)).toMatchObject({ status: 'running' })
  })

  it('waits for the turn that it has posted, and posts none, once the agent of its session is archived', async () => {
    const { agent } = await createAgent(deps, ANYBODY, { name: 'Reporter', system_prompt: 'Report.' }, {})
    const { id } = await createSession(deps, ANYBODY, { agent_id: asUuid(toUuid(agent.id)) })
    const [posted, late] = [
      await createExecution(message({ session_id: id })),
      await createExecution(message({ session_id: id })),
    ]
    await run(posted.place)
    await deps.db.agent.updateMany({ where: { id: toUuid(agent.id) }, data: { status: 'archived' } })
    expect(await run(posted.place)).toEqual({ outcome: 'waits' })
    expect(await run(late.place)).toEqual({ outcome: 'failed' })
    expect((await read(late.place)).error).toMatch(/^session_id: .* is archived/)
  })

  it('creates a session for an agent, one for each execution', async () => {
    const { agent } = await createAgent(deps, ANYBODY, { name: 'Reporter', system_prompt: 'Report.' }, {})
    const { place } = await createExecution(message({ agent_id: agent.id }))
    expect([await run(place), await run(place)]).toEqual([{ outcome: 'waits' }, { outcome: 'waits' }])
    expect(await deps.db.turn.findMany({ where: { sessionId: place.executionId } })).toMatchObject([
      { id: place.executionId },
    ])
  })

  it.each([
    ['a session that does not exist', { session_id: toId('session', newUuid()) }, 'Session not found'],
    ['an agent that does not exist', { agent_id: toId('agent', newUuid()) }, /^agent_id: there is no agent/],
  ])('to %s fails and disables the schedule', async (_title, input, error) => {
    const { schedule, place } = await createExecution(message(input))
    expect(await run(place)).toEqual({ outcome: 'failed' })
    expect((await read(place)).error).toMatch(error)
    expect(await readSchedule(schedule)).toMatchObject({ enabled: false, revision: 2 })
  })

  it('does not disable a schedule that has another target by now', async () => {
    const { schedule } = await createExecution(message({ agent_id: toId('agent', newUuid()) }))
    await patchSchedule(deps, ANYBODY, asUuid(schedule.id), { target: { type: 'activity', name: 'noop' } })
    await disableSchedule(deps, schedule, 'its target cannot be used')
    expect(await readSchedule(schedule)).toMatchObject({ enabled: true })
  })

  it('that is cancelled in Temporal cancels its turn', async () => {
    const { id } = await createSession(deps, ANYBODY, {})
    const { place } = await createExecution(message({ session_id: id }))
    await run(place)
    await cancelExecution(deps, place)
    expect(await read(place)).toMatchObject({ status: 'failed', error: 'The turn was cancelled.' })
    expect(await deps.db.turn.findUniqueOrThrow({ where: { id: place.executionId } })).toMatchObject({
      status: 'cancelled',
    })
  })
})

describe('the end of an execution', () => {
  it('is the first one recorded', async () => {
    const { place } = await createExecution({})
    expect(await run(place)).toEqual({ outcome: 'completed' })
    await endExecution(deps, place, 'Too late.')
    expect(await read(place)).toMatchObject({ status: 'completed', error: null })
  })

  it('is refused to an attempt when a newer one has begun', async () => {
    const { place } = await createExecution({}, { status: 'running', attempts: 2 })
    await endExecution(deps, place, null, { attempts: 1 })
    expect(await read(place)).toMatchObject({ status: 'running' })
  })
})
