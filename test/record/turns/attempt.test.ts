import { whileTurnRuns } from '../../../domain/turns/run/attempt.ts'
import { sleep } from '../../../lib/sleep.ts'
import { createSession } from '../../support/http.ts'
import { startService, type TestService } from '../../support/service.ts'
import { cancel, listTurns, post } from '../../support/turns.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})
afterAll(() => service.stop())

/** Starts a step for a turn of the session that does nothing until its signal aborts. */
async function startStep(signal = new AbortController().signal) {
  const id = await createSession(service.url)
  await post(service.url, id)
  const {
    id: turnId,
    sessionId,
    organizationId,
  } = await service.platform.deps.db.turn.findFirstOrThrow({
    orderBy: { createdAt: 'desc' },
  })
  const turn = { turnId, sessionId, organizationId }
  const ended = whileTurnRuns(service.platform.deps, turn, { fence: 1, signal }, async (live) => {
    await sleep(20_000, live.signal)
    live.signal.throwIfAborted()
    return 'ran to its end'
  })
  return { id, ended }
}

describe('a step of a turn', () => {
  it('is stopped by the published cancellation of its turn, without Temporal', async () => {
    const { id, ended } = await startStep()
    await cancel(service.url, id)
    expect(await ended).toBe('ended')
  })

  it('is not stopped by the end of another turn', async () => {
    const stopping = new AbortController()
    const { id, ended } = await startStep(stopping.signal)
    const other = await startStep()
    await cancel(service.url, other.id)
    expect(await other.ended).toBe('ended')
    stopping.abort(new Error('stopped by the test'))
    await expect(ended).rejects.toThrow('stopped by the test')
    expect((await listTurns(service.url, id))[0].status).toBe('queued')
  })
})
