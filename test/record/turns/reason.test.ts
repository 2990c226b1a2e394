import type { Deps } from '../../../domain/deps.ts'
import { newUuid } from '../../../domain/kit/ids.ts'
import { cancelOwnTurn } from '../../../domain/turns/control/cancel.ts'
import { failTurn } from '../../../domain/turns/control/fail-turn.ts'
import { reason } from '../../../domain/turns/run/reason.ts'
import type { Reasoned } from '../../../domain/turns/run/running-attempt.ts'
import type { TurnPlace } from '../../../domain/turns/turn-place.ts'
import { NO_METRICS, withWorkflows } from '../../support/by-hand.ts'
import { call, createScriptedSession, listEvents, textMessage, waitFor } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { compactTypes, expectSoundRecord, firstTurnTypes, typesOf } from '../../support/record.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
let deps: Deps
let started: TurnPlace[] = []
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = withWorkflows(service.platform.deps, { startTurn: async (turn) => void started.push(turn) })
})
beforeEach(() => {
  started = []
})
afterAll(() => service.stop())

/** Creates a session with a message for each step, and returns the turns that answer them. */
const createTurns = (...steps: object[]) => createTurnsOf({}, steps)

async function createTurnsOf(
  agent: object,
  steps: object[],
): Promise<{ id: string; turns: TurnPlace[]; turn: TurnPlace }> {
  const id = await createScriptedSession(service.url, steps, agent)
  const { body } = await call(service.url, 'GET', `/v1/sessions/${id}`)
  const turns: TurnPlace[] = []
  for (const _ of steps) {
    const message = (await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))).body
    const organizationId = toUuid(body.organization_id)
    turns.push({ organizationId, sessionId: toUuid(id), turnId: toUuid(message.id) })
  }
  const [turn] = turns
  if (turn === undefined) throw new Error('a script has at least one step')
  return { id, turns, turn }
}

const run = (turn: TurnPlace, fence: number, signal = new AbortController().signal): Promise<Reasoned> =>
  reason(deps, turn, 1, { fence, signal })

/** Has the attempts of a test counted. Returns their reasons, and the providers of calls that are made again. */
function countAttempts(): string[] {
  const counted: string[] = []
  const count = (what: string) => void counted.push(what)
  deps = { ...deps, metrics: { ...NO_METRICS, attempted: count, retried: count } }
  return counted
}

const untilRecorded = (id: string, type: string, count: number) =>
  waitFor(async () => {
    const recorded = typesOf(await listEvents(service.url, id)).filter((other) => other === type)
    return recorded.length >= count
  }, `${count} ${type}`)

const SLOW = { text: 'one two three four five six', tokens_per_second: 4 }

describe('an attempt at a step', () => {
  it('stops when a newer one begins, and only the newer one answers', async () => {
    const { id, turn } = await createTurns(SLOW)
    const zombie = run(turn, 1)
    await untilRecorded(id, 'output.message.delta', 1)
    const [successor] = await Promise.all([run(turn, 2), expect(zombie).rejects.toThrow('newer attempt')])
    expect(successor).toMatchObject({ outcome: 'answered' })
    const events = await listEvents(service.url, id)
    expectSoundRecord(events)
    expect(compactTypes(events)).toEqual(firstTurnTypes('in_text'))
  })

  it('that is older does not even begin', async () => {
    const { id, turn } = await createTurns(SLOW)
    const newer = run(turn, 2)
    await untilRecorded(id, 'output.message.started', 1)
    await expect(run(turn, 1)).rejects.toThrow('newer attempt')
    expect(await newer).toMatchObject({ outcome: 'answered' })
    expect(compactTypes(await listEvents(service.url, id))).toEqual(firstTurnTypes())
  })

  it('that comes after the answer reports it, adds nothing, and starts the next turn', async () => {
    const { id, turns, turn } = await createTurns({ text: 'one' }, { text: 'two' })
    expect(await run(turn, 1)).toMatchObject({ outcome: 'answered' })
    const before = await listEvents(service.url, id)
    started = []
    expect(await run(turn, 2)).toMatchObject({ outcome: 'answered' })
    expect(await listEvents(service.url, id)).toEqual(before)
    expect(started).toEqual([expect.objectContaining(turns[1] ?? {})])
  })

  it.each([1, 2])(
    'that comes after an answer which left a message unread goes on, also when run %d times',
    async (times) => {
      const { id, turn } = await createTurns(SLOW)
      const first = run(turn, 1)
      await untilRecorded(id, 'output.message.delta', 1)
      await call(service.url, 'POST', `/v1/sessions/${id}/messages`, { ...textMessage('Steer'), on_busy: 'steer' })
      expect(await first).toMatchObject({ outcome: 'act', runs: [], asks: false })
      const before = await listEvents(service.url, id)
      expect(typesOf(before)).not.toContain('turn.completed')
      for (let fence = 2; fence <= times; fence++) {
        expect(await run(turn, fence)).toMatchObject({ outcome: 'act', runs: [], asks: false })
      }
      expect(await listEvents(service.url, id)).toEqual(before)
      const last = await reason(deps, turn, 2, { fence: 9, signal: new AbortController().signal })
      expect(last).toMatchObject({ outcome: 'answered' })
      expectSoundRecord(await listEvents(service.url, id))
    },
  )

  it('takes a summary over, which replaces the conversation once', async () => {
    const { id, turn } = await createTurns({ text: 'one' }, SLOW)
    await run(turn, 1)
    await call(service.url, 'POST', `/v1/sessions/${id}/cancel`)
    const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/compact?wait=0`)
    const summing = { ...turn, turnId: toUuid(body.turn.id) }
    const zombie = run(summing, 1)
    await untilRecorded(id, 'output.message.delta', 2)
    const [successor] = await Promise.all([run(summing, 2), expect(zombie).rejects.toThrow('newer attempt')])
    expect(successor).toMatchObject({ outcome: 'answered' })
    expect(await run(summing, 3)).toMatchObject({ outcome: 'answered' })
    const events = await listEvents(service.url, id)
    expectSoundRecord(events)
    expect(typesOf(events).filter((type) => type === 'session.compacted')).toHaveLength(1)
  })

  it('that comes after the failure reports it and calls no model', async () => {
    const { id, turn } = await createTurns({ error: { status: 400, message: 'no', times: 1 }, text: 'never' })
    expect(await run(turn, 1)).toEqual({ outcome: 'failed', code: 'llm_error' })
    expect(await run(turn, 2)).toEqual({ outcome: 'failed', code: 'llm_error' })
    expect(typesOf(await listEvents(service.url, id))).not.toContain('output.message.completed')
  })

  it('that comes after an answer that does not fit reports the same, and asks no more often for it', async () => {
    const output_schema = { type: 'object', required: ['city'] }
    const { id, turn } = await createTurnsOf({ output_schema }, [{ text: 'a' }, { text: 'b' }, { text: 'c' }])
    const { signal } = new AbortController()
    const missed = { outcome: 'act', model: 'llmsim-script', runs: [], asks: false }
    for (const [iteration, outcome] of [missed, missed, { outcome: 'failed', code: 'output_invalid' }].entries()) {
      expect(await reason(deps, turn, iteration + 1, { fence: 1, signal })).toEqual(outcome)
      expect(await reason(deps, turn, iteration + 1, { fence: 2, signal })).toEqual(outcome)
    }
    await failTurn(deps, turn, 3, 'output_invalid')
    const events = await listEvents(service.url, id)
    expectSoundRecord(events)
    expect(typesOf(events).filter((type) => type === 'output.message.started')).toHaveLength(3)
  })

  it('has its workflow started when the call fails before the model has begun to answer', async () => {
    const { turn } = await createTurns({ error: { status: 400, message: 'no' } })
    const start = Promise.withResolvers<void>()
    // Temporal is told of a turn once its model is heard.
    const early = { holdsStep: false, claimed: () => {}, heard: start.resolve, isKnown: false, known: start.promise }
    const { signal } = new AbortController()
    const failed = reason(deps, turn, 1, { fence: -1, signal, early })
    expect(await failed).toEqual({ outcome: 'failed', code: 'llm_error' })
  })

  it('is counted as a retry after a failed call', async () => {
    const counted = countAttempts()
    const { turn } = await createTurns({ error: { status: 503, message: 'no', times: 1 }, text: 'yes' })
    expect(await run(turn, 1)).toMatchObject({ outcome: 'retry' })
    expect(await run(turn, 2)).toMatchObject({ outcome: 'answered' })
    expect(counted).toEqual(['first', 'llmsim', 'retry'])
  })

  it('rejects with the reason when it is aborted, so that the step can be retried', async () => {
    const counted = countAttempts()
    const { id, turn } = await createTurns(SLOW)
    const stopped = new AbortController()
    const aborted = run(turn, 1, stopped.signal)
    await untilRecorded(id, 'output.message.delta', 1)
    stopped.abort(new Error('the worker stops'))
    await expect(aborted).rejects.toThrow('the worker stops')
    expect(await run(turn, 2)).toMatchObject({ outcome: 'answered' })
    expect(compactTypes(await listEvents(service.url, id))).toEqual(firstTurnTypes('in_text'))
    expect(counted).toEqual(['first', 'taken_over'])
  })

  it('of a session that is gone ends', async () => {
    const { turn } = await createTurns(SLOW)
    expect(await run({ ...turn, sessionId: newUuid() }, 1)).toEqual({ outcome: 'ended' })
  })

  it('ends when the session is deleted under it', async () => {
    const { id, turn } = await createTurns(SLOW)
    const running = run(turn, 1)
    await untilRecorded(id, 'output.message.delta', 1)
    await deps.db.session.delete({ where: { id: turn.sessionId } })
    expect(await running).toEqual({ outcome: 'ended' })
  })
})

describe('failing a turn', () => {
  it('records it once, however often it is run, and starts the next', async () => {
    const { id, turns, turn } = await createTurns(SLOW, SLOW)
    started = []
    const outcomes = await Promise.all([1, 2, 3].map(() => failTurn(deps, turn, 1, 'timeout')))
    expect(outcomes).toEqual(['failed', 'failed', 'failed'])
    const events = await listEvents(service.url, id)
    expectSoundRecord(events)
    expect(typesOf(events)).toEqual([
      ...['input.message', 'session.started', 'session.activated', 'input.message', 'turn.started'],
      ...['reason.completed', 'turn.failed'],
    ])
    expect(events.at(-1).data).toMatchObject({ error_code: 'timeout', error: expect.stringContaining('longer') })
    expect(events.at(-2).context.exec_id).toMatch(/^exec_/)
    expect(new Set(started.map(({ turnId }) => turnId))).toEqual(new Set([turns[1]?.turnId]))
  })

  it('stops the attempt that still runs', async () => {
    const { id, turn } = await createTurns(SLOW)
    const running = run(turn, 1)
    await untilRecorded(id, 'output.message.delta', 1)
    await failTurn(deps, turn, 1, 'timeout')
    expect(await running).toEqual({ outcome: 'ended' })
    expect(typesOf(await listEvents(service.url, id)).slice(-2)).toEqual(['turn.failed', 'session.idled'])
  })

  it('leaves a turn alone that has its answer', async () => {
    const { id, turn } = await createTurns({ text: 'one' })
    await run(turn, 1)
    const before = await listEvents(service.url, id)
    expect(await failTurn(deps, turn, 1, 'internal_error')).toBe('completed')
    expect(await listEvents(service.url, id)).toEqual(before)
  })

  it('leaves a turn alone that was cancelled, or whose session is gone', async () => {
    const { id, turn } = await createTurns({ text: 'one' })
    await cancelOwnTurn(deps, turn)
    const before = await listEvents(service.url, id)
    expect(await failTurn(deps, turn, 1, 'internal_error')).toBe('ended')
    expect(await listEvents(service.url, id)).toEqual(before)
    await deps.db.session.delete({ where: { id: turn.sessionId } })
    expect(await failTurn(deps, turn, 1, 'internal_error')).toBe('ended')
  })
})
