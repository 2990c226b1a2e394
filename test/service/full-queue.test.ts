import { createSession, expectError } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'
import { cancel, listTurns, post, statusOf } from '../support/turns.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})
afterAll(() => service.stop())

describe('a session with 1000 unfinished turns', () => {
  /** Creates a session as if 999 more messages had been posted after the first. */
  async function createFullSession(): Promise<string> {
    const { db } = service.platform.deps
    const id = await createSession(service.url)
    await post(service.url, id)
    const { id: _, inputSequence, ...first } = await db.turn.findFirstOrThrow({ orderBy: { createdAt: 'desc' } })
    const { sessionId, organizationId } = first
    await db.$executeRaw`
      INSERT INTO turns (id, organization_id, session_id, input_sequence)
      SELECT gen_random_uuid(), ${organizationId}::uuid, ${sessionId}::uuid, ${inputSequence} + n
      FROM generate_series(1, 999) AS n`
    await db.session.update({ where: { id: sessionId }, data: { lastSequence: { increment: 999 } } })
    return id
  }

  it('refuses more messages, and says when to retry', async () => {
    const id = await createFullSession()
    for (const query of ['', '?wait=5']) {
      const answer = await post(service.url, id, 'x', {}, query)
      expectError(answer, 429, /1000 messages/)
      expect(answer.body.code).toBe('queue_full')
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expectError(await post(service.url, id, 'x', { on_busy: 'reject' }), 409)
    expect(await service.platform.deps.db.turn.count({ where: { finishedAt: null } })).toBe(1000)
    const [turn] = await listTurns(service.url, id, '?limit=1')
    expect((await cancel(service.url, id, { turn_id: turn.id })).body.status).toBe('cancelled')
    expect((await post(service.url, id)).status).toBe(201)
    expectError(await post(service.url, id), 429)
    await service.platform.deps.db.session.deleteMany()
  })

  it.each(['cancel', 'interrupt'])('is ended as a whole by %s, in one transaction', async (how) => {
    const id = await createFullSession()
    const startedAt = performance.now()
    const answer =
      how === 'cancel' ? await cancel(service.url, id) : await post(service.url, id, 'Stop', { on_busy: 'interrupt' })
    const tookMs = Math.round(performance.now() - startedAt)
    process.stdout.write(`1000 turns ended by ${how}: ${tookMs} ms\n`)
    expect(answer.status).toBe(how === 'cancel' ? 200 : 201)
    const unfinished = await service.platform.deps.db.turn.count({ where: { finishedAt: null } })
    expect(unfinished).toBe(how === 'cancel' ? 0 : 1)
    expect(await statusOf(service.url, id)).toBe(how === 'cancel' ? 'idle' : 'active')
    await service.platform.deps.db.session.deleteMany()
  })
})
