import { cancelAtOnce, workflowEnd } from '../support/cancelling.ts'
import { createScriptedSession, createSession, listEvents, waitUntilIdle } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { killProcesses, startWorkerProcess } from '../support/process.ts'
import { compactTypes, expectSoundRecord, firstTurnTypes, textOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { forgetActivation, listTurns, post, statusOf, turnIdOf, waitForEvent } from '../support/turns.ts'

let service: TestService
let url: string
beforeEach(async () => {
  service = await startService({ worker: false })
  url = service.url
})
afterEach(async () => {
  await killProcesses()
  await service.stop()
})

describe('a message with no worker there', () => {
  it('is accepted before anything can answer it', async () => {
    const { status, body } = await post(url, await createSession(url), 'Hello?')
    expect([status, body.sequence]).toEqual([201, 1])
  })

  it('makes its session active in its own transaction, and a queued message adds nothing to that', async () => {
    const id = await createSession(url)
    const first = await post(url, id, 'Hello?')
    expect(await statusOf(url, id)).toBe('active')
    await post(url, id, 'Anybody?')
    const turn = turnIdOf(first)
    const context = { turn_id: turn, input_message_id: first.body.id, trace_id: turn }
    const expected = [
      ['input.message', {}],
      ['session.started', context],
      ['session.activated', context],
      ['input.message', {}],
    ]
    expect((await listEvents(url, id)).map(({ type, context }) => [type, context])).toEqual(expected)
    await cancelAtOnce(url, id)
    expect(await statusOf(url, id)).toBe('idle')
    await post(url, id, 'Now?', { on_busy: 'reject' })
    expect(await statusOf(url, id)).toBe('active')
    expect((await listEvents(url, id)).slice(-2).map(({ type }) => type)).toEqual([
      'input.message',
      'session.activated',
    ])
  })
})

describe('a message that an earlier release accepted', () => {
  it('begins its session with its first step', async () => {
    const id = await createSession(url)
    await post(url, id, 'Hello?')
    await forgetActivation(service.platform.deps, toUuid(id))
    await service.startWorker()
    expect(compactTypes(await waitUntilIdle(url, id))).toEqual(firstTurnTypes())
  })
})

describe('cancelling with no worker there', () => {
  it('settles turns that have not begun at once, and a later worker adds nothing', async () => {
    const id = await createSession(url)
    const turns = [turnIdOf(await post(url, id)), turnIdOf(await post(url, id))]
    const events = await cancelAtOnce(url, id)
    expect(events.map((event) => event.type)).toEqual([
      ...['input.message', 'session.started', 'session.activated', 'input.message'],
      ...['turn.cancelled', 'turn.cancelled', 'session.idled'],
    ])
    expect(await statusOf(url, id)).toBe('idle')
    await service.startWorker()
    // The second turn has no workflow, or its workflow finds the turn ended.
    await workflowEnd(service, turns[0] ?? '')
    const next = await post(url, id, 'Now?', {}, '?wait=60')
    expect(next.body.turn.status).toBe('completed')
    const all = await listEvents(url, id)
    expectSoundRecord(all)
    expect(all.slice(0, events.length)).toEqual(events)
    expect(all.slice(events.length, events.length + 3).map((event) => event.type)).toEqual([
      ...['input.message', 'session.activated', 'turn.started'],
    ])
    expect((await listTurns(url, id)).map((turn) => turn.started_at === null)).toEqual([true, true, false])
  })

  it('settles a turn at once that had begun when the worker was killed', async () => {
    const text = Array.from({ length: 200 }, (_, index) => `word${index}`).join(' ')
    const id = await createScriptedSession(url, [{ text, tokens_per_second: 20 }])
    const worker = await startWorkerProcess(service)
    const turnId = turnIdOf(await post(url, id))
    await waitForEvent(url, id, 'output.message.delta', 3)
    await worker.kill()
    const queued = turnIdOf(await post(url, id))
    const events = await cancelAtOnce(url, id)
    const kept = events.find((event) => event.type === 'output.message.completed').data.message
    expect(kept.metadata).toMatchObject({ interrupted: true })
    expect(textOf(kept)).toBe(events.findLast((event) => event.type === 'output.message.delta').data.accumulated)
    await startWorkerProcess(service)
    expect(await workflowEnd(service, turnId)).toMatch(/^(CANCELLED|COMPLETED)$/)
    expect(await listEvents(url, id)).toEqual(events)
    expect((await listTurns(url, id)).map(({ id, status }) => [id, status])).toEqual([
      [turnId, 'cancelled'],
      [queued, 'cancelled'],
    ])
  })
})
