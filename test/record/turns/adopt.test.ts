import type { Deps } from '../../../domain/deps.ts'
import { releaseLease } from '../../../domain/turns/run/process-lease.ts'
import { reason } from '../../../domain/turns/run/reason.ts'
import type { TurnPlace } from '../../../domain/turns/turn-place.ts'
import { renewLease } from '../../support/by-hand.ts'
import { call, createScriptedSession, listEvents, waitUntilIdle } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { answerOf, compactTypes, expectSoundRecord, firstTurnTypes } from '../../support/record.ts'
import { startService, type TestService } from '../../support/service.ts'
import { post, waitForEvent } from '../../support/turns.ts'

const TEXT = 'one two three four'
const never = new AbortController().signal

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
  // Only the test runs steps.
  deps.workflows.startTurn = async () => {}
})
afterAll(() => service.stop())

async function createTurn(wordsPerSecond: number): Promise<{ id: string; turn: TurnPlace }> {
  const id = await createScriptedSession(service.url, [{ text: TEXT, tokens_per_second: wordsPerSecond }])
  const { body } = await call(service.url, 'GET', `/v1/sessions/${id}`)
  const { body: message } = await post(service.url, id)
  const place = { organizationId: toUuid(body.organization_id), sessionId: toUuid(id), turnId: toUuid(message.id) }
  return { id, turn: place }
}

const begin = (turn: TurnPlace) => deps.attempts.begin(turn, 1, turn.organizationId, never)
const types = async (id: string) => compactTypes(await listEvents(service.url, id))

describe('an activity that comes to an attempt of its process', () => {
  it('goes on with it under its own fence, however many appends are under way', async () => {
    const { id, turn } = await createTurn(1.2)
    expect(await begin(turn)).toEqual({ outcome: 'unfinished', process: deps.attempts.process })
    expect(await deps.attempts.adopt(turn, 1, { fence: 7, signal: never })).toMatchObject({ outcome: 'answered' })
    expect(await types(id)).toEqual(firstTurnTypes())
    const [step] = await deps.db.turnStep.findMany({ where: { turnId: turn.turnId } })
    expect(step).toMatchObject({ fence: 7n, claims: 1 })
  })

  it('does not go on with one whose step another process has taken', async () => {
    const { id, turn } = await createTurn(0.7)
    await begin(turn)
    const dies = new AbortController()
    const other = reason(deps, turn, 1, { fence: 2, signal: dies.signal }).catch(() => 'died')
    await waitForEvent(service.url, id, 'output.message.started', 2)
    dies.abort(new Error('killed'))
    expect(await other).toBe('died')
    expect(await deps.attempts.adopt(turn, 1, { fence: 3, signal: never })).toBeUndefined()
    expect(await reason(deps, turn, 1, { fence: 3, signal: never })).toMatchObject({ outcome: 'answered' })
    const events = await waitUntilIdle(service.url, id)
    expectSoundRecord(events)
    expect(answerOf(events)).toBe(TEXT)
  })
})

describe('a step that has begun in another process', () => {
  const OTHER = 4711
  const CLAIMED_ELSEWHERE = { outcome: 'claimed_elsewhere', process: OTHER }

  const seen = (secsAgo: number) => deps.db.$executeRaw`
    INSERT INTO processes (number, seen_at) VALUES (${OTHER}, now() - make_interval(secs => ${secsAgo}))
    ON CONFLICT (number) DO UPDATE SET seen_at = excluded.seen_at`

  async function createClaimed(fence: number): Promise<TurnPlace> {
    const { turn } = await createTurn(1000)
    await deps.db.turnStep.create({ data: { turnId: turn.turnId, step: 'reason:1', fence, claims: 1 } })
    return turn
  }

  it.each([
    ['is left to it by all but an activity that has sought it long enough', 0, [CLAIMED_ELSEWHERE, CLAIMED_ELSEWHERE]],
    ['is for an activity when the process has died', 4, [{ outcome: 'claimed_elsewhere' }, { outcome: 'answered' }]],
  ])('%s', async (_what, secsAgo, [ofTask, ofActivity]) => {
    const turn = await createClaimed(-OTHER)
    await seen(secsAgo)
    const { process } = deps.attempts
    expect(await reason(deps, turn, 1, { fence: -process, signal: never })).toEqual(ofTask)
    expect(await reason(deps, turn, 1, { fence: 7, signal: never, mayHandOver: true })).toMatchObject(ofActivity ?? {})
    expect(await reason(deps, turn, 1, { fence: 8, signal: never })).toMatchObject({ outcome: 'answered' })
  })

  it('is left to activities by workflow tasks once one of them has taken it', async () => {
    const turn = await createClaimed(7)
    const { process } = deps.attempts
    expect(await reason(deps, turn, 1, { fence: -process, signal: never })).toEqual({ outcome: 'claimed_elsewhere' })
    expect(await reason(deps, turn, 1, { fence: 8, signal: never, mayHandOver: true })).toMatchObject({
      outcome: 'answered',
    })
  })

  it('is left to an activity by its own process, once the attempt there is over', async () => {
    const { process } = deps.attempts
    const turn = await createClaimed(-process)
    await renewLease(deps)
    expect(await reason(deps, turn, 1, { fence: -process, signal: never })).toEqual({ outcome: 'claimed_elsewhere' })
    expect(await reason(deps, turn, 1, { fence: 8, signal: never, mayHandOver: true })).toMatchObject({
      outcome: 'answered',
    })
    await releaseLease(deps)
    expect(await deps.db.process.count({ where: { number: process, seenAt: { gt: new Date(0) } } })).toBe(0)
  })
})
