import type { Deps } from '../../../domain/deps.ts'
import { failTurn } from '../../../domain/turns/control/fail-turn.ts'
import { reason } from '../../../domain/turns/run/reason.ts'
import type { TurnPlace } from '../../../domain/turns/turn-place.ts'
import { withWorkflows } from '../../support/by-hand.ts'
import { call, createScriptedSession, listEvents, textMessage } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { expectSoundRecord, typesOf } from '../../support/record.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
let deps: Deps
let started: string[] = []
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = withWorkflows(service.platform.deps, { startTurn: async ({ turnId }) => void started.push(turnId) })
})
beforeEach(() => {
  started = []
})
afterAll(() => service.stop())

async function createQueue(count: number): Promise<{ id: string; turns: [TurnPlace, TurnPlace, TurnPlace] }> {
  const steps = Array.from({ length: count }, () => ({ text: 'an answer' }))
  const id = await createScriptedSession(service.url, steps)
  const { body } = await call(service.url, 'GET', `/v1/sessions/${id}`)
  const organizationId = toUuid(body.organization_id)
  const turns: TurnPlace[] = []
  for (let index = 0; index < count; index++) {
    const { body: message } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
    turns.push({ organizationId, sessionId: toUuid(id), turnId: toUuid(message.id) })
  }
  // The tests below create three turns.
  return { id, turns: turns as [TurnPlace, TurnPlace, TurnPlace] }
}

const attempt = (fence = 1) => ({ fence, signal: new AbortController().signal })
const turnOf = (id: string) => deps.db.turn.findUniqueOrThrow({ where: { id } })

describe('the turns of a session', () => {
  it('run one at a time, even if the end of an earlier one is recorded again', async () => {
    const { turns } = await createQueue(3)
    const [first, second] = turns
    await failTurn(deps, first, 1, 'internal_error')
    // The next one is started without being waited for.
    await new Promise(setImmediate)
    expect(started.filter((id) => id === second.turnId)).toHaveLength(1)
    await deps.db.turn.update({ where: { id: second.turnId }, data: { status: 'active' } })
    started = []
    await Promise.all([1, 2].map(() => failTurn(deps, first, 1, 'internal_error')))
    expect(started).toEqual([])
  })

  it('do not begin out of order, whatever starts them', async () => {
    const { id, turns } = await createQueue(3)
    const [first, second, third] = turns
    const before = await listEvents(service.url, id)
    for (const early of [second, third]) expect(await reason(deps, early, 1, attempt())).toEqual({ outcome: 'ended' })
    expect(await listEvents(service.url, id)).toEqual(before)
    expect((await turnOf(third.turnId)).status).toBe('queued')
    for (const turn of turns) expect(await reason(deps, turn, 1, attempt())).toMatchObject({ outcome: 'answered' })
    const events = await listEvents(service.url, id)
    expectSoundRecord(events)
    expect((await turnOf(first.turnId)).finishedAt).not.toBeNull()
    expect(typesOf(events).filter((type) => type === 'turn.completed')).toHaveLength(3)
  })

  it('start the session once, even if the first one fails before its model call', async () => {
    const { id, turns } = await createQueue(1)
    await failTurn(deps, turns[0], 1, 'internal_error')
    await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Again'))
    const { body } = await call(service.url, 'GET', `/v1/sessions/${id}/turns`)
    expect(body.data[0].started_at).toBeNull()
    await reason(deps, { ...turns[0], turnId: toUuid(body.data[0].id) }, 1, attempt())
    const types = typesOf(await listEvents(service.url, id))
    expect(types.filter((type) => type === 'session.started')).toHaveLength(1)
    expect(types.at(-1)).toBe('session.idled')
  })
})

describe('a step whose attempts all disappear without a result', () => {
  it('is given up without a model call', async () => {
    const { id, turns } = await createQueue(1)
    const [{ turnId }] = turns
    await deps.db.turnStep.create({ data: { turnId, step: 'reason:1', fence: 1, claims: 19 } })
    // The 20th attempt is still made.
    expect(
      await reason(deps, turns[0], 1, { fence: 2, signal: AbortSignal.abort(new Error('killed')) }).catch(String),
    ).toContain('killed')
    expect(await reason(deps, turns[0], 1, attempt(3))).toEqual({ outcome: 'failed', code: 'internal_error' })
    expect(typesOf(await listEvents(service.url, id))).not.toContain('output.message.completed')
  })
})
