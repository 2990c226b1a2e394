import { newUuid } from '../../domain/kit/ids.ts'
import { sweepDeletedSessions } from '../../domain/upkeep/session-deletion/delete-session.ts'
import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  textMessage,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { countOfSession, expectNone, expectSome, SESSION_COLUMNS, tablesWith } from '../support/tables.ts'
import { withClient } from '../support/temporal.ts'
import { waitForEvent } from '../support/turns.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const ask = (method: string, path: string, body?: unknown) => call(service.url, method, `/v1/sessions${path}`, body)
const endless = { text: 'la '.repeat(5000), tokens_per_second: 20 }
/** Calls that keep something in the session. */
const storing = [
  { name: 'kv_store', arguments: { operation: 'set', key: 'a', value: 'b' } },
  { name: 'secret_store', arguments: { operation: 'set', name: 'a', value: 'b' } },
  { name: 'sql_execute', arguments: { database: 'notes', sql: 'CREATE TABLE notes (text)' } },
  { name: 'create_schedule', arguments: { name: 'a', message: 'b', cron: '0 9 1 1 *' } },
]
const question = { type: 'client_side', name: 'ask', description: 'Asks.', parameters: {} }

/** Usage is numbers only. */
const KEPT = 'usage_hours'

/** Counts a session's rows in the record by table. All counts are zero once it is gone. */
async function countRows(id: string): Promise<Record<string, number>> {
  const { db } = service.platform.deps
  const sessionId = toUuid(id)
  const tables = await tablesWith(db, SESSION_COLUMNS)
  return {
    sessions: await db.session.count({ where: { id: sessionId } }),
    deleted_sessions: await db.deletedSession.count({ where: { id: sessionId } }),
    ...(await countOfSession(
      db,
      tables.filter(({ name }) => name !== KEPT),
      sessionId,
    )),
  }
}

/** Expects no rows of the session in any table. */
const expectGone = async (id: string): Promise<void> =>
  expectNone(
    await countRows(id),
    (table, count) =>
      `${table} has ${count} rows left of a session that was deleted: domain/upkeep/session-deletion/owned-data.ts removes what ` +
      'no foreign key does, and what is inserted must lock the session (FOR KEY SHARE).',
  )

/** Expects at least one row of the session in each table. */
const expectOneOfEach = async (id: string): Promise<void> => {
  const { deleted_sessions, ...counts } = await countRows(id)
  expectSome(
    counts,
    (table) =>
      `${table} has nothing of the session that this test deletes: make a row before, and see that it goes, by a foreign ` +
      'key or in domain/upkeep/session-deletion/owned-data.ts.',
  )
}

/** Expects that the session is gone and its deletion is recorded. */
async function expectOnlyNoted(id: string): Promise<void> {
  const { deleted_sessions, ...counts } = await countRows(id)
  expect(deleted_sessions).toBe(1)
  expect(Object.values(counts)).toEqual(Object.keys(counts).map(() => 0))
}

const insertEvents = (sessionId: string, count: number) => service.platform.deps.db.$executeRaw`
  INSERT INTO events (session_id, sequence, type, ts, turn_id, step, data)
  SELECT ${sessionId}::uuid, n, 'output.message.delta', now(), ${newUuid()}::uuid, 'reason:1', '{}'
  FROM generate_series(1, ${count}::int) n`

/** Signal that never aborts. */
const ALWAYS = new AbortController().signal

const isGone = async (id: string): Promise<boolean> => Object.values(await countRows(id)).every((count) => count === 0)

async function untilGone(id: string): Promise<void> {
  await waitFor(() => isGone(id), `${id} to be gone from the record`).catch(async (error: Error) => {
    await expectGone(id)
    throw error
  })
}

/** Returns the newest turn, whose id is also its workflow's id. */
const turnOf = async (id: string): Promise<string> => (await ask('GET', `/${id}/turns`)).body.data[0].id

const untilWorkflowEnds = (turnId: string) =>
  withClient(service, (client) =>
    waitFor(async () => {
      // A busy process tells Temporal of a turn after a while.
      const workflow = await client.workflow
        .getHandle(turnId)
        .describe()
        .catch(() => undefined)
      return workflow !== undefined && workflow.status.name !== 'RUNNING' && workflow.status.name
    }, 'the workflow to end'),
  )

describe('deleting a session', () => {
  it('leaves only the usage of its agent', async () => {
    const capabilities = [{ ref: 'session_storage' }, { ref: 'session_sql_database' }, { ref: 'session_schedule' }]
    const steps = [{ tool_calls: storing }, { text: 'Hi' }]
    const id = await createScriptedSession(service.url, steps, { capabilities }, { snapshots: true })
    await ask('PUT', `/${id}/pin`)
    await ask('POST', `/${id}/fs/a.txt`, { content: 'Hello' })
    const target = { type: 'workflow', name: 'session_message', input: { session_id: id, message: 'Hello' } }
    const yearly = { name: 'Yearly', cron_expression: '0 0 1 1 *', target }
    const schedule = (await call(service.url, 'POST', '/v1/durable/schedules', yearly)).body.id
    await ask('POST', `/${id}/messages?wait=60`, textMessage('Hello'))
    await waitUntilIdle(service.url, id)
    await ask('POST', `/${id}/fs/b.txt`, { content: 'Hello' })
    await ask('PATCH', `/${id}`, { tools: [] })
    // As if it had waited for a place, and nobody had looked since.
    const [turn] = await service.platform.deps.db.turn.findMany({ where: { sessionId: toUuid(id) } })
    const since = new Date(Date.now() + 3_600_000)
    await service.platform.deps.db.waitingStep.create({ data: { turnId: turn?.id ?? '', iteration: 1, since } })
    const lease = { turnId: turn?.id ?? '', toolCallId: 'a call', holder: 'a program', expiresAt: since }
    await service.platform.deps.db.toolCallLease.create({ data: lease })
    const { agent_id, organization_id } = (await ask('GET', `/${id}`)).body
    const [organizationId, agentId] = [toUuid(organization_id), toUuid(agent_id)]
    await service.platform.deps.db.faceSession.create({
      data: { organizationId, face: 'openai', agentId, externalId: 'a chat', sessionId: toUuid(id) },
    })
    const budget = await call(service.url, 'POST', '/v1/budgets', {
      ...{ scope: 'session', session_id: id, limit_tokens: 1_000_000 },
    })
    await service.platform.deps.db.budgetReservation.create({
      data: {
        turnId: turn?.id ?? '',
        step: 'reason:1',
        budgetId: toUuid(budget.body.id),
        amount: 2,
        input: 1,
        outputTokens: 1,
      },
    })
    await expectOneOfEach(id)
    const { usage } = (await ask('GET', `/${id}`)).body
    expect(await ask('DELETE', `/${id}`)).toMatchObject({ status: 204, body: '' })
    await untilGone(id)
    for (const path of [
      '',
      '/messages',
      '/events',
      '/sse',
      '/turns',
      '/fs',
      '/fs/a.txt',
      '/databases',
      '/databases/notes',
    ]) {
      expectError(await ask('GET', `/${id}${path}`), 404, 'Session not found')
    }
    expectError(await ask('DELETE', `/${id}`), 404, 'Session not found')
    expectError(await call(service.url, 'GET', `/v1/durable/schedules/${schedule}`), 404, 'Schedule not found')
    expectError(await ask('POST', `/${id}/messages`, textMessage('Hello?')), 404, 'Session not found')
    expect((await call(service.url, 'GET', `/v1/agents/${agent_id}`)).body.usage).toEqual(usage)
  })

  it('ends its streams and the turn that runs, and its workflow', async () => {
    const id = await createScriptedSession(service.url, [endless])
    const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
    const ofTurn = await openStream(service.url, `/v1/sessions/${id}/messages`, {
      method: 'POST',
      body: textMessage('Sing'),
    })
    await stream.until(({ event }) => event === 'output.message.delta')
    await ofTurn.until(({ event }) => event === 'output.message.delta')
    const turnId = await turnOf(id)
    expect((await ask('DELETE', `/${id}`)).status).toBe(204)
    for (const open of [stream, ofTurn]) expect(await open.ended).toBe('whole')
    expect(stream.frames.at(-1)).toMatchObject({ event: 'disconnecting', data: { reason: 'session_deleted' } })
    expect(ofTurn.frames.at(-1)).toMatchObject({ event: 'turn.cancelled' })
    expect(await untilWorkflowEnds(turnId)).toBe('CANCELLED')
    await untilGone(id)
  })

  it('ends a waiting turn, queued turns, and requests that wait for an answer', async () => {
    const steps = [{ tool_calls: [{ name: 'ask', arguments: {} }] }, endless]
    const id = await createScriptedSession(service.url, steps, { tools: [question] })
    await ask('POST', `/${id}/messages?wait=60`, textMessage('First'))
    const turnId = await turnOf(id)
    const other = await createScriptedSession(service.url, [endless])
    const waiting = ask('POST', `/${other}/messages?wait=60`, textMessage('Running'))
    await waitFor(async () => (await ask('GET', `/${other}`)).body.status === 'active', 'the turn to run')
    await ask('POST', `/${other}/messages`, textMessage('Queued'))
    for (const one of [id, other]) expect((await ask('DELETE', `/${one}`)).status).toBe(204)
    expect(await untilWorkflowEnds(turnId)).toBe('CANCELLED')
    expectError(await waiting, 404)
    for (const one of [id, other]) await untilGone(one)
  })

  it('concurrent with messages and other deletions happens once, and nothing is left', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await createScriptedSession(service.url, [endless])
      const answers = await Promise.all([
        ask('POST', `/${id}/messages`, textMessage('One')),
        ask('DELETE', `/${id}`),
        ask('POST', `/${id}/messages`, textMessage('Two', { on_busy: 'interrupt' })),
        ask('DELETE', `/${id}`),
        ask('PATCH', `/${id}`, { title: 'New' }),
        ask('PUT', `/${id}/pin`),
        ask('POST', `/${id}/cancel`),
      ])
      const [one, first, two, second, ...others] = answers.map(({ status }) => status)
      expect([first, second].sort()).toEqual([204, 404])
      for (const status of [one, two]) expect([201, 404]).toContain(status)
      for (const status of others) expect([200, 204, 404]).toContain(status)
      await untilGone(id)
    }
  })
})

describe('a deletion that was not finished', () => {
  it.each([
    ['waits for its client', { tool_calls: [{ name: 'ask', arguments: {} }] }, 'waitingfortoolresults'],
    // Its workflow finds out by itself that the session is gone.
    ['runs', endless, 'active'],
  ])('because Temporal was away while its turn %s is finished by the sweeper', async (_, step, status) => {
    const { deps } = service.platform
    const id = await createScriptedSession(service.url, [step], { tools: [question] })
    await ask('POST', `/${id}/messages`, textMessage('Hello'))
    const turnId = await turnOf(id)
    await waitForEvent(service.url, id, 'output.message.started')
    await waitFor(async () => (await ask('GET', `/${id}`)).body.status === status, `the session to be ${status}`)
    const { workflows } = deps
    deps.workflows = { ...workflows, cancelTurn: () => Promise.reject(new Error('away')) }
    expect((await ask('DELETE', `/${id}`)).status).toBe(204)
    await expectOnlyNoted(id)
    await expect(sweepDeletedSessions(deps, ALWAYS, 0)).rejects.toThrow('away')
    await expectOnlyNoted(id)
    deps.workflows = workflows
    await sweepDeletedSessions(deps, ALWAYS, 0)
    expect(await untilWorkflowEnds(turnId)).toBe('CANCELLED')
    await untilGone(id)
  })

  it('is finished by several workers at once, and ends only when the last has deleted', async () => {
    const { deps } = service.platform
    const peer = (await service.startPeer()).platform.deps
    const id = newUuid()
    await insertEvents(id, 40_000)
    await deps.db.deletedSession.create({ data: { id, turnIds: [] } })
    const sweeps = [deps, peer, deps].map((one) => sweepDeletedSessions(one, ALWAYS, 0))
    const isNoted = () => deps.db.deletedSession.count({ where: { id } })
    const eventsAfter = waitFor(async () => (await isNoted()) === 0, 'the row to go').then(() =>
      deps.db.event.count({ where: { sessionId: id } }),
    )
    expect(await eventsAfter).toBe(0)
    await Promise.all(sweeps)
  })

  it('because the row was deleted by hand is finished by the sweeper', async () => {
    const { deps } = service.platform
    const id = await createSession(service.url)
    await ask('POST', `/${id}/messages?wait=60`, textMessage('Hello'))
    await waitUntilIdle(service.url, id)
    await deps.db.session.delete({ where: { id: toUuid(id) } })
    expect(await countRows(id)).toMatchObject({ session_pins: 0, deleted_sessions: 1 })
    await sweepDeletedSessions(deps, ALWAYS, 0)
    await expectGone(id)
  })

  it('because its process died is finished by the sweeper, however many events there are', async () => {
    const { deps } = service.platform
    const id = newUuid()
    await insertEvents(id, 25_000)
    await deps.db.deletedSession.create({ data: { id, turnIds: [newUuid()] } })
    await Promise.all([sweepDeletedSessions(deps, ALWAYS, 0), sweepDeletedSessions(deps, ALWAYS, 0)])
    await expectGone(`session_${id.replaceAll('-', '')}`)
  })
})
