import type { TemporalService } from '../../dev/services/index.ts'
import { call, createScriptedSession, createSession, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { privateTemporal } from '../support/private-services.ts'
import { answerOf, compactTypes, expectSoundRecord, firstTurnTypes, turnsOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { workflowsOf } from '../support/temporal.ts'

const TEXT = Array.from({ length: 30 }, (_, index) => `word${index}`).join(' ')

const place = privateTemporal()
let temporal: TemporalService | undefined
let service: TestService

beforeAll(async () => {
  service = await startService({ environment: { TEMPORAL_ADDRESS: await place.address() } })
})
afterAll(async () => {
  await service.stop()
  await temporal?.stop()
  await place.remove()
})

async function startTemporal(): Promise<void> {
  temporal ??= await place.start()
}
async function stopTemporal(): Promise<void> {
  await temporal?.stop()
  temporal = undefined
}

async function post(id: string): Promise<void> {
  const { status } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
  expect(status).toBe(201)
}

/** Delays the outcome of starting turns until `work` is done. A request that waited for it would never end. */
async function beforeAnyStart(work: () => Promise<void>): Promise<void> {
  const { deps } = service.platform
  const { startTurn } = deps.workflows
  const isDone = Promise.withResolvers<void>()
  deps.workflows.startTurn = (turn, owner) => startTurn(turn, owner).finally(() => isDone.promise)
  await work()
  deps.workflows.startTurn = startTurn
  isDone.resolve()
}

describe('a message that is posted while Temporal is away', () => {
  it('is accepted at once, and its turn runs once when Temporal is back', async () => {
    await stopTemporal()
    const ids = await Promise.all([createSession(service.url), createSession(service.url)])
    await beforeAnyStart(async () => {
      for (const id of [...ids, ...ids]) await post(id)
    })
    await startTemporal()
    const startedAt = Date.now()
    for (const id of ids) {
      const events = await waitUntilIdle(service.url, id)
      expectSoundRecord(events)
      const types = compactTypes(events)
      expect(types.slice(0, 3)).toEqual(firstTurnTypes().slice(0, 3))
      // The model may have been asked meanwhile, but no turn has ended.
      expect(types.lastIndexOf('input.message')).toBeLessThan(types.indexOf('turn.completed'))
      expect(turnsOf(events).map((turnId) => answerOf(events, turnId)?.slice(0, 5))).toEqual(['Hello', 'Hello'])
      for (const turnId of turnsOf(events)) expect(await workflowsOf(service, turnId)).toBe(1)
    }
    process.stdout.write(`Temporal back: all turns ended ${Date.now() - startedAt} ms later\n`)
  })
})

describe('a turn that runs while Temporal goes away', () => {
  it('streams on, and ends once', async () => {
    await startTemporal()
    const id = await createScriptedSession(service.url, [{ text: TEXT, tokens_per_second: 4 }, { text: 'more' }])
    const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
    await post(id)
    await stream.until((frame) => frame.event === 'output.message.delta')
    await stopTemporal()
    const { length } = stream.events()
    await stream.until(() => stream.events().length > length + 3)
    await startTemporal()
    const events = await waitUntilIdle(service.url, id)
    await stream.until((frame) => frame.event === 'session.idled')
    expect(stream.events()).toEqual(events)
    stream.close()
    expectSoundRecord(events)
    expect(answerOf(events)).toBe(TEXT)
    // The session is not stuck.
    await post(id)
    const later = await waitFor(async () => {
      const now = await waitUntilIdle(service.url, id)
      return turnsOf(now).length === 2 && now
    }, 'the second turn')
    expectSoundRecord(later)
    expect(answerOf(later, turnsOf(later)[1])).toBe('more')
  })
})
