import type { Deps } from '../../../domain/deps.ts'
import type { NewEvent } from '../../../domain/events/log/append.ts'
import { newUuid } from '../../../domain/kit/ids.ts'
import { leaveDead, releaseLease, takeDead } from '../../../domain/turns/run/process-lease.ts'
import { processName } from '../../../lib/worker-identity.ts'
import { append, createAnswer, createOpenTurn, renewLease } from '../../support/by-hand.ts'
import { call, type Json, listEvents } from '../../support/http.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
})
afterAll(() => service.stop())
beforeEach(() => deps.db.process.deleteMany())

const LOST = 4711
const TAKER = 4712
const as = (process: number): Deps => ({ ...deps, attempts: { ...deps.attempts, process } })

const REASON = 'reason:1'
const TOOL = 'tool:1:a:_%b'
const started = (): NewEvent => createAnswer().start()
const toolStarted = (child?: object): NewEvent => ({
  type: 'tool.started',
  step: TOOL,
  execId: newUuid(),
  data: { tool_call: { id: 'a:_%b', name: 'wait', arguments: {} }, ...(child && { child }) },
})
const retrying: NewEvent = {
  type: 'reason.retrying',
  step: `${REASON}:1`,
  execId: newUuid(),
  data: { attempt: 1, error: 'busy', retry_after_ms: 1 },
}
const asked = (claims: number): NewEvent => ({
  type: 'tool.call_requested',
  step: 'act:1:1:a:_%b',
  execId: newUuid(),
  data: { tool_calls: [], asked: { call_id: 'a:_%b', claims, keys: {} } },
})

type Attempts = {
  claim(process: number, event: NewEvent): Promise<string>
  write(event: NewEvent): Promise<string>
  takeovers(): Promise<Json[] | undefined>
  id: string
}

/** A turn at a step that attempts claim one after the other. */
async function createStep(step: string): Promise<Attempts> {
  const { id, writer } = await createOpenTurn(deps)
  let fence = 0
  let by = deps
  const write = async (event: NewEvent) => {
    const [recorded] = await append(by, { ...writer, attempt: { step, fence } }, [event])
    return recorded?.ts ?? ''
  }
  return {
    id,
    claim: (process, event) => {
      fence++
      by = as(process)
      return write(event)
    },
    write,
    takeovers: () => takeoversOf(id),
  }
}

const takeoversOf = async (id: string): Promise<Json[] | undefined> =>
  (await call(service.url, 'GET', `/v1/sessions/${id}/turns`)).body.data[0].takeovers

const readProcess = async (number: number) => {
  const row = await deps.db.process.findUniqueOrThrow({ where: { number } })
  return { ...row, endedAt: row.endedAt?.toISOString() }
}
const die = (number: number, secsAgo: number) => deps.db.$executeRaw`
  UPDATE processes SET seen_at = now() - make_interval(secs => ${secsAgo}) WHERE number = ${number}`

describe('a step that a new attempt takes over', () => {
  it('tells of a process that was killed, with its last sign of life and the names, though its row has been taken', async () => {
    const { claim, takeovers, id } = await createStep(REASON)
    await renewLease(as(LOST))
    await renewLease(as(TAKER))
    const begunAt = await claim(LOST, started())
    const { seenAt } = await readProcess(LOST)
    await die(LOST, 100)
    await deps.db.process.update({ where: { number: LOST }, data: { endedAt: new Date(Date.parse(begunAt) + 1) } })
    expect(await takeDead(as(TAKER))).toEqual([LOST])
    await leaveDead(deps, LOST, true)
    expect((await readProcess(LOST)).seenAt.getTime()).toBeLessThan(seenAt.getTime())
    expect(await takeDead(as(TAKER))).toEqual([])
    const at = await claim(TAKER, started())
    const [event] = (await listEvents(service.url, id)).filter(({ type }) => type === 'output.message.started')
    expect(await takeovers()).toEqual([
      {
        iteration: 1,
        tool_call_id: null,
        span_id: event?.context.span_id,
        reason: 'process_lost',
        begun_at: begunAt,
        lost_at: (await readProcess(LOST)).endedAt,
        taken_over_at: at,
        from_process: processName,
        to_process: processName,
      },
    ])
  })

  it('keeps when a process that is found dead was last seen, and its name for an hour', async () => {
    await renewLease(as(LOST))
    await renewLease(as(TAKER))
    await die(LOST, 100)
    const { seenAt } = await readProcess(LOST)
    await takeDead(as(TAKER))
    await leaveDead(deps, LOST, true)
    expect(await readProcess(LOST)).toMatchObject({ endedAt: seenAt.toISOString() })
    await deps.db.$executeRaw`UPDATE processes SET ended_at = now() - interval '61 minutes' WHERE number = ${LOST}`
    await leaveDead(deps, TAKER, true)
    expect(await deps.db.process.findMany({ select: { number: true } })).toEqual([{ number: BigInt(TAKER) }])
  })

  // Its open polls may receive what was taken from it.
  it.each([
    ['soon after its end', 8, true, 1],
    ['later, less often', 40, true, 5],
    ['at once if some of its steps could not be taken', 40, false, 0],
  ])('is taken from the dead process again: %s', async (_, secsAgo, isDone, afterSecs) => {
    await renewLease(as(LOST))
    await renewLease(as(TAKER))
    await die(LOST, secsAgo)
    expect(await takeDead(as(TAKER))).toEqual([LOST])
    const before = Date.now()
    await leaveDead(deps, LOST, isDone)
    const { takenUntil } = await deps.db.process.findUniqueOrThrow({ where: { number: LOST } })
    expect(Math.round((Number(takenUntil) - before) / 1000)).toBe(afterSecs)
  })

  it('tells of a process that stops, which has given its lease up', async () => {
    const { claim, takeovers } = await createStep(REASON)
    await renewLease(as(LOST))
    await claim(LOST, started())
    await releaseLease(as(LOST))
    await claim(TAKER, started())
    const { endedAt } = await readProcess(LOST)
    const expected = { reason: 'process_stopped', lost_at: endedAt, from_process: processName, to_process: null }
    expect(await takeovers()).toMatchObject([expected])
  })

  it('tells of an attempt that was lost in a process that lives, by its latest event, also in forks', async () => {
    const { claim, write, takeovers, id } = await createStep(REASON)
    await renewLease(as(LOST))
    await claim(LOST, started())
    const lastAt = await write(createAnswer().delta('text'))
    await claim(LOST, started())
    const expected = [{ reason: 'retried', lost_at: lastAt }]
    expect(await takeovers()).toMatchObject(expected)
    await write({ type: 'turn.completed', data: { iterations: 1 } })
    const fork = await call(service.url, 'POST', `/v1/sessions/${id}/fork`, {})
    expect(fork).toMatchObject({ status: 201 })
    expect(await takeoversOf(fork.body.session.id)).toMatchObject(expected)
  })

  it('is told of for each lost run of a tool, from its own begin', async () => {
    const { claim, takeovers } = await createStep(TOOL)
    const first = await claim(LOST, toolStarted())
    await claim(TAKER, { ...asked(0), step: 'act:1:1:other' })
    await claim(LOST, { ...asked(0), step: 'act:1:2:other' })
    const own = { iteration: 1, tool_call_id: 'a:_%b', reason: 'process_lost' }
    const [one, two] = (await takeovers()) ?? []
    expect(one).toMatchObject({ ...own, begun_at: first, lost_at: first })
    expect(two).toMatchObject({ ...own, begun_at: one?.taken_over_at, lost_at: one?.taken_over_at })
  })

  it('is not told of when its model failed and is asked again, and is when that attempt is lost', async () => {
    const { claim, write, takeovers } = await createStep(REASON)
    await claim(LOST, started())
    await write(retrying)
    await claim(TAKER, started())
    expect(await takeovers()).toBeUndefined()
    await claim(LOST, started())
    expect(await takeovers()).toHaveLength(1)
  })

  it('is not told of when its tool has asked its user, and is when the run after the answer is lost', async () => {
    const { claim, write, takeovers } = await createStep(TOOL)
    await claim(LOST, toolStarted())
    await write(asked(1))
    await claim(TAKER, toolStarted())
    expect(await takeovers()).toBeUndefined()
    await claim(LOST, toolStarted())
    expect(await takeovers()).toHaveLength(1)
  })

  it('is not told of when its tool asks an agent, whose turn tells of its own', async () => {
    const { claim, takeovers } = await createStep(TOOL)
    const child = { agent_id: `agent_${'0'.repeat(32)}`, session_id: `session_${'0'.repeat(32)}`, turn_id: null }
    await claim(LOST, toolStarted(child))
    await claim(TAKER, toolStarted(child))
    expect(await takeovers()).toBeUndefined()
  })

  it('is among the latest 20 of the turn', async () => {
    const { claim, takeovers } = await createStep(REASON)
    const times: string[] = []
    for (let attempt = 0; attempt < 22; attempt++) times.push(await claim(LOST, started()))
    expect((await takeovers())?.map(({ taken_over_at }) => taken_over_at)).toEqual(times.slice(-20))
  })
})
