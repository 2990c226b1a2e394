import type { Deps } from '../../../domain/deps.ts'
import { newUuid, toId } from '../../../domain/kit/ids.ts'
import { isDead, keepTaken, takeDead } from '../../../domain/turns/run/process-lease.ts'
import type { Reasoned } from '../../../domain/turns/run/running-attempt.ts'
import { type Begun, createRunningAttempts } from '../../../domain/turns/run/running-attempts.ts'
import { beginWaitingSteps, waitForPlace } from '../../../domain/turns/run/waiting-steps.ts'
import { releaseDeadProcesses, releaseUnclaimedActivities } from '../../../domain/turns/sweep/lost-activities.ts'
import { startLostTurns } from '../../../domain/turns/sweep/lost-starts.ts'
import type { TurnPlace } from '../../../domain/turns/turn-place.ts'
import { processPlace } from '../../../lib/process-place.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import { ANYBODY, append, postUnanswered, renewLease } from '../../support/by-hand.ts'
import { createSession, waitFor } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { insertExecution, insertSchedule } from '../../support/schedule-rows.ts'
import { startService, type TestService } from '../../support/service.ts'

/** What a process knows of its own activities while Temporal answers. */
const NONE_LOST = { mayBeLost: () => false, isLost: () => false }

/** Process in which Temporal believes the activities to run. */
let lostProcess = 0

/** Turns of one organization, in a process with five places. One owner gets at most four. */
let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})
afterAll(() => service.stop())

async function postTurn(): Promise<TurnPlace> {
  const id = await createSession(service.url)
  const { turnUuid } = await postUnanswered(service.platform.deps, id, 'Hello')
  return { organizationId: ANYBODY.organizationId, sessionId: toUuid(id), turnId: turnUuid }
}

type Run = { turnId: string; end: (reasoned: Reasoned) => void; fail: (error: Error) => void }

/** A process that begins steps, claims them in the record, and ends them when it is told to. */
function createProcess() {
  const runs: Run[] = []
  const resumed: string[] = []
  const released: string[] = []
  const attempts = createRunningAttempts({
    run: async ({ turnId }, _iteration, { early }) => {
      await deps.db.$executeRaw`
        INSERT INTO turn_steps (turn_id, step, fence, claims, process)
        VALUES (${turnId}::uuid, 'reason:1', 1, 1, ${attempts.process}::bigint)`
      early?.claimed()
      return new Promise((end, fail) => runs.push({ turnId, end, fail }))
    },
    raise: async () => true,
    places: 5,
    handOverMs: 1,
  })
  attempts.setPolling(true)
  const deps: Deps = {
    ...service.platform.deps,
    attempts,
    workflows: {
      ...service.platform.deps.workflows,
      startTurn: async () => {},
      resumeTurn: async (turnId) => void resumed.push(turnId),
      releaseActivities: async (workflowId, isLost) =>
        (await isLost(lostProcess, 'turn/1/1')) && released.push(workflowId) > 1,
    },
  }
  const begin = (turn: TurnPlace): Promise<Begun> =>
    attempts.begin(turn, 1, turn.organizationId, new AbortController().signal)
  return { deps, attempts, runs, resumed, released, begin }
}

describe('a step for which there is no place', () => {
  it('waits in the record, is left alone by sweeps, and begins when its owner has a place again', async () => {
    const { deps, attempts, runs, resumed, begin } = createProcess()
    const turns = await Promise.all(Array.from({ length: 6 }, postTurn))
    const [fifth, sixth] = turns.splice(4) as [TurnPlace, TurnPlace]
    for (const turn of turns) expect(await begin(turn)).toMatchObject({ outcome: 'unfinished' })
    expect(await begin(fifth)).toEqual({ outcome: 'full' })
    expect(await waitForPlace(deps, fifth, 1)).toBe('waits')
    expect(await waitForPlace(deps, sixth, 1)).toBe('waits')
    await beginWaitingSteps(deps)
    expect(runs).toHaveLength(4)
    const swept = new Map<string, number>()
    await startLostTurns(deps, swept, { graceMs: 0, repeatMs: 1000, limit: 10 })
    expect(turns.every(({ turnId }) => swept.has(turnId))).toBe(true)
    expect([swept.has(fifth.turnId), swept.has(sixth.turnId)]).toEqual([false, false])
    const place = attempts.reserve('another owner')
    expect(place).toBeDefined()
    place?.release()

    runs[0]?.end({ outcome: 'ended' })
    await waitFor(async () => {
      await beginWaitingSteps(deps)
      return resumed.length > 0
    }, 'the fifth turn to begin')
    expect(resumed).toEqual([fifth.turnId])
    const waiting = await waitFor(async () => {
      const rows = await deps.db.waitingStep.findMany()
      return rows.length === 1 && rows
    }, 'the fifth turn to wait no more')
    expect(waiting).toMatchObject([{ turnId: sixth.turnId, iteration: 1 }])
  })

  it('does not wait when another process has begun it, or when the turn is over', async () => {
    const { deps, begin } = createProcess()
    const turn = await postTurn()
    await begin(turn)
    await waitFor(async () => (await deps.db.turnStep.count({ where: { turnId: turn.turnId } })) > 0, 'the claim')
    expect(await waitForPlace(deps, turn, 1)).toBe('unfinished')
    const over = await postTurn()
    await deps.db.turn.update({ where: { id: over.turnId }, data: { status: 'cancelled', finishedAt: new Date() } })
    expect(await waitForPlace(deps, over, 1)).toBe('unfinished')
  })
})

describe('a process that has died', () => {
  beforeEach(async () => {
    const { db } = service.platform.deps
    await db.process.deleteMany()
    await db.scheduleExecution.deleteMany()
    await db.turn.updateMany({ data: { status: 'cancelled', finishedAt: new Date() } })
  })

  const die = (deps: Deps, secsAgo: number) => deps.db.$executeRaw`
    INSERT INTO processes (number, seen_at)
    VALUES (${deps.attempts.process}::bigint, now() - make_interval(secs => ${secsAgo}))`

  it('has its activities taken from it once, and the workflows notified that have none', async () => {
    const [dead, living] = [createProcess(), createProcess()]
    const [first, second] = [await postTurn(), await postTurn()]
    for (const turn of [first, second]) await dead.begin(turn)
    const turnId = { in: [first.turnId, second.turnId] }
    await waitFor(async () => (await dead.deps.db.turnStep.count({ where: { turnId } })) === 2, 'the claims')
    await dead.deps.db.turn.updateMany({
      where: { id: turnId },
      data: { status: 'active' },
    })
    await die(dead.deps, 10)
    lostProcess = dead.attempts.process
    await renewLease(living.deps)
    await releaseDeadProcesses(living.deps)
    expect(living.released).toHaveLength(2)
    expect(living.resumed).toHaveLength(1)
    await releaseDeadProcesses(living.deps)
    expect(living.released).toHaveLength(2)
  })

  it('has activities taken from it whose steps it has not claimed', async () => {
    const [dead, living] = [createProcess(), createProcess()]
    const { db } = living.deps
    const createTurn = async (steps: [process: number, step: string][] = [], secsAgo = 5): Promise<TurnPlace> => {
      const turn = await postTurn()
      const status = steps.length > 0 ? 'active' : 'queued'
      const createdAt = new Date(Date.now() - secsAgo * 1000)
      await db.turn.update({ where: { id: turn.turnId }, data: { status, createdAt } })
      const rows = steps.map(([process, step]) => ({ turnId: turn.turnId, step, fence: 1, process }))
      await db.turnStep.createMany({ data: rows })
      return turn
    }
    const [ofDead, ofLiving] = [dead, living].map(({ attempts }) => attempts.process) as [number, number]
    const unbegun = await createTurn()
    const between = await createTurn([[ofLiving, 'reason:1']])
    const writer = { sessionId: between.sessionId, turnId: between.turnId }
    await append(living.deps, writer, [{ type: 'reason.completed', step: 'reason:1', execId: newUuid(), data: {} }])
    const behind = await createTurn()
    await db.turn.update({
      where: { id: behind.turnId },
      data: { sessionId: unbegun.sessionId, inputSequence: 99 },
    })
    // New, at a step of a living process, and left to `releaseDeadProcesses`.
    await createTurn([], 0)
    await createTurn([[ofLiving, 'reason:1']])
    const taken = await createTurn([[ofDead, 'reason:1']])
    await renewLease(living.deps)
    const asked = new Map<string, number>()
    expect(await releaseUnclaimedActivities(living.deps, asked, NONE_LOST)).toBe(0)
    await die(dead.deps, 10)
    lostProcess = ofDead
    await releaseUnclaimedActivities(living.deps, asked, NONE_LOST)
    expect(living.released.toSorted()).toEqual([unbegun, between].map(({ turnId }) => toId('turn', turnId)).toSorted())
    await releaseUnclaimedActivities(living.deps, asked, NONE_LOST)
    expect(living.released).toHaveLength(2)
    // Temporal has given the next attempt to a poll of the living process, which never got it.
    const silent = { mayBeLost: () => true, isLost: () => true }
    await releaseUnclaimedActivities(living.deps, new Map(), silent)
    expect(living.released).not.toContain(toId('turn', taken.turnId))
    lostProcess = ofLiving
    await releaseUnclaimedActivities(living.deps, new Map(), silent)
    expect(living.released).toContain(toId('turn', taken.turnId))
  })

  it('has activities taken from it whose steps a living process has claimed and cannot end', async () => {
    const [dead, living, other] = [createProcess(), createProcess(), createProcess()]
    const { db } = living.deps
    const begin = async (turns: TurnPlace[]) => {
      const { length } = living.runs
      for (const turn of turns) await living.begin(turn)
      await waitFor(async () => living.runs.length === length + turns.length, 'the claims')
      return living.runs.slice(length)
    }
    // More than the share of one process is likely to have.
    const broken = await Promise.all(Array.from({ length: 8 }, postTurn))
    for (const turns of [broken.slice(0, 4), broken.slice(4)]) {
      for (const { fail } of await begin(turns)) fail(new Error('Connection terminated unexpectedly'))
      await waitFor(
        async () => turns.every(({ turnId }) => living.attempts.abandoned.list().includes(turnId)),
        'the ends',
      )
    }
    await begin([await postTurn(), await postTurn()])
    await db.turn.updateMany({
      where: { finishedAt: null },
      data: { status: 'active', createdAt: new Date(Date.now() - 5000) },
    })
    // One attempt broke off before its claim, and the workflow of another has come back and found the claim.
    const [unclaimed, found] = broken as [TurnPlace, TurnPlace]
    await db.turnStep.deleteMany({ where: { turnId: { in: [unclaimed.turnId, found.turnId] } } })
    const [again] = await begin([found])
    again?.end({ outcome: 'claimed_elsewhere' })
    for (const { deps } of [living, other]) await renewLease(deps)
    await die(dead.deps, 10)
    lostProcess = dead.attempts.process
    for (const { deps } of [living, other]) await releaseUnclaimedActivities(deps, new Map(), NONE_LOST)
    const ids = broken.map(({ turnId }) => toId('turn', turnId))
    expect([...living.released, ...other.released].toSorted()).toEqual(ids.toSorted())
    expect(living.released).toEqual(expect.arrayContaining(ids.slice(1)))
  })

  it('has activities taken from it of executions that it has not begun', async () => {
    const [dead, living] = [createProcess(), createProcess()]
    const [ofDead, ofLiving] = [dead, living].map(({ attempts }) => attempts.process) as [number, number]
    const { id: scheduleId } = await insertSchedule(living.deps)
    const createRun = (given: Partial<Prisma.ScheduleExecutionCreateManyInput>, secsAgo = 5) =>
      insertExecution(living.deps, scheduleId, {
        status: 'running',
        createdAt: new Date(Date.now() - secsAgo * 1000),
        ...given,
      })
    const unbegun = await createRun({ status: 'pending' })
    const between = await createRun({ process: ofLiving, attempts: 1, settledAttempt: 1 })
    // New, ended, at an attempt in a living process, and left to `releaseDeadProcesses`.
    await createRun({ status: 'pending' }, 0)
    await createRun({ status: 'completed', completedAt: new Date() })
    await createRun({ process: ofLiving, attempts: 1 })
    const taken = await createRun({ process: ofDead, attempts: 1 })
    await renewLease(living.deps)
    const asked = new Map<string, number>()
    expect(await releaseUnclaimedActivities(living.deps, asked, NONE_LOST)).toBe(0)
    await die(dead.deps, 10)
    lostProcess = ofDead
    await releaseUnclaimedActivities(living.deps, asked, NONE_LOST)
    expect(living.released.toSorted()).toEqual([unbegun, between].toSorted())
    await releaseDeadProcesses(living.deps)
    expect(living.released).toEqual([...living.released.slice(0, 2), taken])
  })

  it('is left to the process that has taken it as long as that one says so', async () => {
    const [dead, living, other] = [createProcess(), createProcess(), createProcess()]
    await die(dead.deps, 10)
    for (const { deps } of [living, other]) await renewLease(deps)
    expect(await takeDead(living.deps)).toEqual([dead.attempts.process])
    const wait = (secs: number) => living.deps.db.$executeRaw`
      UPDATE processes SET taken_until = taken_until - make_interval(secs => ${secs})`
    await wait(2)
    await keepTaken(living.deps, [dead.attempts.process])
    await wait(2)
    expect(await takeDead(other.deps)).toEqual([])
    await wait(1)
    expect(await takeDead(other.deps)).toEqual([dead.attempts.process])
  })

  it('is taken by one process at a time, and again when that one dies; a living process is not taken', async () => {
    const [dead, alive, living] = [createProcess(), createProcess(), createProcess()]
    await die(dead.deps, 10)
    await die(alive.deps, 1)
    await renewLease(living.deps)
    expect(await takeDead(living.deps)).toEqual([dead.attempts.process])
    expect(await takeDead(living.deps)).toEqual([])
    await living.deps.db.$executeRaw`UPDATE processes SET taken_until = now() - interval '1 second'`
    expect(await takeDead(living.deps)).toEqual([dead.attempts.process])
  })

  it('is taken at once when its end can be seen, and once', async () => {
    const [dead, alive, living] = [createProcess(), createProcess(), createProcess()]
    for (const { deps } of [dead, alive, living]) await renewLease(deps)
    const data = { place: `${processPlace}0` }
    await dead.deps.db.process.updateMany({ where: { number: dead.attempts.process }, data })
    expect(await takeDead(living.deps)).toEqual([dead.attempts.process])
    expect(await isDead(living.deps, dead.attempts.process)).toBe(true)
    expect(await takeDead(living.deps)).toEqual([])
  })

  it('is not taken by a process that could not renew its own lease lately, when all look dead', async () => {
    const [dead, living] = [createProcess(), createProcess()]
    await die(dead.deps, 10)
    expect(await takeDead(living.deps)).toEqual([])
    await die(living.deps, 10)
    await renewLease(living.deps)
    expect(await takeDead(living.deps)).toEqual([])
    await living.deps.db.$executeRaw`UPDATE processes SET held_since = now() - interval '3 seconds'`
    expect(await takeDead(living.deps)).toEqual([dead.attempts.process])
  })

  it('is taken at once by such a process if it was seen meanwhile: Postgres was not away', async () => {
    const [dead, living] = [createProcess(), createProcess()]
    await die(dead.deps, 4)
    await die(living.deps, 7)
    await renewLease(living.deps)
    expect(await takeDead(living.deps)).toEqual([dead.attempts.process])
  })
})
