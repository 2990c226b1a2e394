import type { Deps } from '../../../domain/deps.ts'
import { newUuid } from '../../../domain/kit/ids.ts'
import type { Clock } from '../../../domain/schedules/clock/clock.ts'
import { MAX_PER_SESSION, openSessionSchedules } from '../../../domain/schedules/open-session-schedules.ts'
import { cancelTurns } from '../../../domain/turns/control/cancel.ts'
import { reason } from '../../../domain/turns/run/reason.ts'
import { failTool, runTool } from '../../../domain/turns/run/tool.ts'
import { ANYBODY, withWorkflows } from '../../support/by-hand.ts'
import { call, createScriptedSession, type Json, listEvents, textMessage, waitFor } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { expectSoundRecord } from '../../support/record.ts'
import { insertSchedules } from '../../support/schedule-rows.ts'
import { startService, type TestService } from '../../support/service.ts'

const NEXT = new Date('2035-01-01T09:00:00Z')

let service: TestService
let deps: Deps
/** Ids of the schedules that the clock was told of. */
let kept: string[]
let removed: string[]
beforeAll(async () => {
  service = await startService({ worker: false })
  const nothing = async () => {}
  const clock: Clock = {
    keep: async ({ scheduleId }) => {
      kept.push(scheduleId)
      return undefined
    },
    remove: async (scheduleId) => void removed.push(scheduleId),
    nextTimes: async () => ({ since: new Date(), times: [NEXT], changedAt: new Date(0) }),
    timesBetween: async () => [],
  }
  const replaced = { ...service.platform.deps, clock }
  deps = withWorkflows(replaced, { startTurn: nothing, resumeTurn: nothing, cancelTurn: nothing })
})
beforeEach(() => {
  kept = []
  removed = []
})
afterAll(() => service.stop())

type ScriptedCall = [name: 'create_schedule' | 'list_schedules' | 'delete_schedule', args: object]
const attempt = (fence: number, signal = new AbortController().signal) => ({ fence, signal })
const create = (name: string, more: object = { cron: '0 9 * * *' }): ScriptedCall => [
  'create_schedule',
  { name, message: `About ${name}`, ...more },
]
const list: ScriptedCall = ['list_schedules', {}]
const remove = (name: string): ScriptedCall => ['delete_schedule', { name }]

/** Creates a turn whose model has made these calls in one answer. None of them has run yet. */
async function createCalls(...calls: ScriptedCall[]) {
  const tool_calls = calls.map(([name, args], at) => ({ id: `call-${at}`, name, arguments: args }))
  const capabilities = [{ ref: 'session_schedule' }]
  const id = await createScriptedSession(service.url, [{ tool_calls }, { text: 'done' }], { capabilities })
  const message = (await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))).body
  const turn = { organizationId: ANYBODY.organizationId, sessionId: toUuid(id), turnId: toUuid(message.id) }
  expect(await reason(deps, turn, 1, attempt(1))).toMatchObject({ outcome: 'act' })
  const run = (position: number, its = deps, as = attempt(1)) =>
    runTool({ ...its, openSchedules: (scope) => openSessionSchedules(its, scope) }, turn, 1, position, as)
  /** Runs the calls one after the other. Returns their results. */
  const runAll = async (its = deps) => {
    for (const position of calls.keys()) await run(position, its)
    return resultsOf(id)
  }
  const rows = () => deps.db.schedule.findMany({ where: { sessionId: turn.sessionId }, orderBy: { id: 'asc' } })
  /** Names of the schedules in the organization. */
  const names = calls.flatMap(([, args]) => ('name' in args ? [`${id} ${args.name}`] : []))
  return { id, turn, run, runAll, rows, names }
}

/** Returns the results of the calls, in their order: values or errors. */
async function resultsOf(id: string): Promise<Json[]> {
  const events = await listEvents(service.url, id)
  expectSoundRecord(events)
  const completed = events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data)
  completed.sort((a, b) => Number(a.tool_call_id.slice(5)) - Number(b.tool_call_id.slice(5)))
  return completed.map(({ result, error }) => (result ? JSON.parse(result[0].text) : error))
}

/** Runs `between` once, before an attempt's change reaches the database. */
function beforeChange(between: () => Promise<unknown>): Deps {
  let isFirst = true
  const db = deps.db.$extends({
    query: {
      $queryRaw: async ({ args, query }) => {
        if (isFirst && args.sql.includes('claim_session_write')) {
          isFirst = false
          await between()
        }
        return query(args)
      },
    },
  })
  return { ...deps, db: db as unknown as Deps['db'] }
}

/** Runs `between` once, after an attempt's change has been committed. */
function afterChange(between: () => Promise<unknown>): Deps {
  let isFirst = true
  const db = new Proxy(deps.db, {
    get: (target, key) => {
      const value = Reflect.get(target, key)
      if (key !== '$transaction') return value
      return async (...args: unknown[]) => {
        const result = await Reflect.apply(value, target, args)
        // Other transactions of an attempt store no effect.
        if (!isFirst || typeof result !== 'object' || result === null || !('id' in result)) return result
        isFirst = false
        await between()
        return result
      }
    },
  })
  return { ...deps, db }
}

const withQuota = (maxCount: number): Deps => ({
  ...deps,
  quotas: { ...deps.quotas, schedules: { ...deps.quotas.schedules, maxCount } },
})

describe('a schedule that a tool call makes', () => {
  it('posts its message in its own session, and is not forgotten while the service is away', async () => {
    const { id, turn, runAll, rows } = await createCalls(
      create('report', { cron: '0 9 * * 1-5', timezone: 'Asia/Tokyo' }),
    )
    expect(await runAll()).toEqual([
      { name: 'report', cron: '0 9 * * 1-5', timezone: 'Asia/Tokyo', enabled: true, next_run: NEXT.toISOString() },
    ])
    const [row] = await rows()
    expect(row).toMatchObject({
      organizationId: turn.organizationId,
      name: `${id} report`,
      toolName: 'report',
      cronExpression: '0 9 * * 1-5',
      timezone: 'Asia/Tokyo',
      isOneOff: false,
      enabled: true,
      catchUpMissed: true,
      maxCatchUp: 1,
      targetType: 'workflow',
      targetName: 'session_message',
      targetInput: { session_id: id, message: 'About report' },
      targetHeaders: null,
    })
    expect(kept).toEqual([row?.id])
  })

  it('is once at a time of its time zone, which is kept in UTC', async () => {
    const { runAll, rows } = await createCalls(create('once', { at: '2031-07-01T09:30:15', timezone: 'Europe/Berlin' }))
    expect(await runAll()).toMatchObject([{ name: 'once', at: '2031-07-01T07:30:15.000Z', timezone: 'UTC' }])
    expect(await rows()).toMatchObject([{ cronExpression: '15 30 7 1 7 * 2031', timezone: 'UTC', isOneOff: true }])
  })

  it('is answered without a next run while Temporal is away', async () => {
    const away = () => Promise.reject(new Error('away'))
    const clock: Clock = { keep: away, remove: away, nextTimes: away, timesBetween: away }
    const { runAll, rows } = await createCalls(create('report'))
    expect(await runAll({ ...deps, clock })).toMatchObject([{ name: 'report', next_run: null }])
    expect(await rows()).toMatchObject([{ clockDueAt: expect.any(Date), enabled: true }])
  })

  it('is refused with a sentence when it is wrong', async () => {
    const { runAll, rows } = await createCalls(
      create('cron', { cron: 'daily' }),
      create('zone', { cron: '0 9 * * *', timezone: 'Mars/Olympus' }),
      create('past', { at: '2020-01-01T00:00:00Z' }),
      create('far', { at: '2200-01-01T00:00:00Z' }),
      create('long', { cron: '0 9 * * *', message: 'é'.repeat(16 * 1024 + 1) }),
      create('fits', { cron: '0 9 * * *', message: 'é'.repeat(16 * 1024) }),
    )
    expect(await runAll()).toEqual([
      expect.stringMatching(/cron/),
      expect.stringMatching(/time zone/i),
      expect.stringMatching(/^at: must be in the future; it is .*Z now$/),
      'at: must be at most 10 years ahead',
      'message: must be at most 32768 bytes of UTF-8',
      expect.objectContaining({ name: 'fits' }),
    ])
    expect(await rows()).toHaveLength(1)
  })

  it('has a name that no other of its session has', async () => {
    const calls = await createCalls(create('report'), create('report'), remove('report'), create('report'))
    const taken = 'The session has a schedule "report" already; delete it first, or take another name'
    const made = expect.objectContaining({ name: 'report', cron: '0 9 * * *' })
    expect(await calls.runAll()).toEqual([made, taken, { name: 'report', deleted: true }, made])
    const other = await createCalls(create('report'))
    expect(await other.runAll()).toEqual([made])
  })
})

describe('the quotas', () => {
  it(`are ${MAX_PER_SESSION} of a session, however many are made at once`, async () => {
    const calls = await createCalls(...[0, 1, 2, 3].map((n) => create(`${n}`)))
    const { organizationId, sessionId } = calls.turn
    await insertSchedules(deps, MAX_PER_SESSION - 2, (n) => ({ organizationId, sessionId, toolName: `old ${n}` }))
    // Administrators' do not count.
    await insertSchedules(deps, 5, () => ({ organizationId, sessionId }))
    await Promise.all([0, 1, 2, 3].map((n) => calls.run(n)))
    const results = await resultsOf(calls.id)
    expect(results.filter((result) => typeof result === 'object')).toHaveLength(2)
    const tooMany = `A session has at most ${MAX_PER_SESSION} schedules that its agent has made; delete one first`
    expect(results.filter((result) => typeof result === 'string')).toEqual([tooMany, tooMany])
  })

  it("are half of the organization's, however many sessions make them", async () => {
    const sessions = await Promise.all([0, 1, 2, 3].map(() => createCalls(create('one'))))
    const { organizationId } = ANYBODY
    const made = { organizationId, deletedAt: null, toolName: { not: null } }
    const most = (await deps.db.schedule.count({ where: made })) + 2
    await Promise.all(sessions.map(({ run }) => run(0, withQuota(2 * most))))
    const results = (await Promise.all(sessions.map(({ id }) => resultsOf(id)))).flat()
    expect(results.filter((result) => typeof result === 'object')).toHaveLength(2)
    const tooMany = `The agents of the organization have made ${most} schedules, which is the limit; delete one first`
    expect(results.filter((result) => typeof result === 'string')).toEqual([tooMany, tooMany])
  })
})

describe('the schedules of others', () => {
  it('are neither listed nor deleted: made by administrators, other sessions and organizations', async () => {
    const other = await createCalls(create('theirs'))
    await other.runAll()
    const calls = await createCalls(create('b'), create('a'), list, remove('theirs'), remove('by hand'), remove('gone'))
    const { organizationId, sessionId } = calls.turn
    const by = { organizationId, sessionId }
    await insertSchedules(deps, 1, () => ({ ...by, name: `by hand ${newUuid()}` }))
    await insertSchedules(deps, 1, () => ({ ...by, toolName: 'gone', deletedAt: new Date() }))
    const foreign = await deps.db.organization.create({ data: { id: newUuid(), name: 'Other' } })
    await insertSchedules(deps, 1, () => ({ organizationId: foreign.id, sessionId, toolName: 'theirs' }))
    const [, , listed, ...deleted] = await calls.runAll()
    expect(listed).toEqual({
      schedules: ['a', 'b'].map((name) => ({
        ...{ name, message: `About ${name}`, cron: '0 9 * * *', timezone: 'UTC', enabled: true },
        next_run: NEXT.toISOString(),
      })),
    })
    expect(deleted).toEqual(['theirs', 'by hand', 'gone'].map((name) => ({ name, deleted: false })))
    expect(await deps.db.schedule.count({ where: { sessionId, deletedAt: null } })).toBe(4)
    expect(await other.rows()).toMatchObject([{ deletedAt: null }])
  })

  it('are listed with the beginnings of their messages', async () => {
    const { runAll } = await createCalls(create('long', { cron: '0 9 * * *', message: '🦉'.repeat(1000) }), list)
    const [, { schedules }] = await runAll()
    expect(schedules[0].message).toBe(`${'🦉'.repeat(500)}…`)
  })
})

describe('a deleted schedule', () => {
  it('has no texts any more, and its clock is stopped', async () => {
    const { runAll, rows } = await createCalls(create('report'), remove('report'), list)
    expect((await runAll()).slice(1)).toEqual([{ name: 'report', deleted: true }, { schedules: [] }])
    const [row] = await rows()
    expect(row).toMatchObject({ deletedAt: expect.any(Date), enabled: false, revision: 2, toolName: null })
    expect(row).toMatchObject({ name: row?.id, targetInput: {} })
    expect(removed).toEqual([row?.id])
  })

  it.each([
    ['keeps', 'pending'],
    ['keeps', 'running'],
    ['has no longer', 'completed'],
  ] as const)('%s its message for an execution that is %s', async (keeps, status) => {
    const { id, turn, run, rows } = await createCalls(create('report'), remove('report'))
    await run(0)
    const [row] = await rows()
    const times = { scheduledAt: new Date(), status }
    const { organizationId } = turn
    await deps.db.scheduleExecution.create({
      data: { id: newUuid(), organizationId, scheduleId: row?.id ?? '', ...times },
    })
    await run(1)
    const targetInput = keeps === 'keeps' ? { session_id: id, message: 'About report' } : {}
    expect(await rows()).toMatchObject([{ targetInput, toolName: null }])
  })
})

describe('a call whose process died after its change', () => {
  it('makes one schedule, and answers what it would have answered', async () => {
    const { id, run, rows } = await createCalls(create('report'))
    await expect(
      run(
        0,
        afterChange(() => run(0, deps, attempt(2))),
      ),
    ).rejects.toThrow('newer attempt')
    expect(await resultsOf(id)).toMatchObject([{ name: 'report', cron: '0 9 * * *', next_run: NEXT.toISOString() }])
    expect(await rows()).toHaveLength(1)
  })

  it('answers the same when its time has passed by then', async () => {
    const { id, run, rows } = await createCalls(create('once', { at: new Date(Date.now() + 5000).toISOString() }))
    const later = async () => {
      await waitFor(async () => Date.now() > ((await rows())[0]?.launchedUntil.getTime() ?? 0) + 2000, 'its time')
      await run(0, deps, attempt(2))
    }
    await expect(run(0, afterChange(later))).rejects.toThrow('newer attempt')
    expect(await resultsOf(id)).toMatchObject([{ name: 'once', at: expect.any(String) }])
    expect(await rows()).toHaveLength(1)
  })

  it('answers with the schedule that has been deleted meanwhile, and makes no other', async () => {
    const { id, run, rows } = await createCalls(create('report'), remove('report'))
    const again = async () => {
      await run(1)
      await run(0, deps, attempt(2))
    }
    await expect(run(0, afterChange(again))).rejects.toThrow('newer attempt')
    expect(await resultsOf(id)).toEqual([
      { name: 'report', cron: '0 9 * * *', timezone: 'UTC', enabled: false, next_run: null },
      { name: 'report', deleted: true },
    ])
    expect(await rows()).toHaveLength(1)
  })

  it('deletes one schedule, and no later one of the same name', async () => {
    const { id, run, rows } = await createCalls(create('report'), remove('report'), create('report'))
    await run(0)
    const again = async () => {
      await run(2)
      await run(1, deps, attempt(2))
    }
    await expect(run(1, afterChange(again))).rejects.toThrow('newer attempt')
    expect((await resultsOf(id))[1]).toEqual({ name: 'report', deleted: true })
    expect(await rows()).toMatchObject([{ deletedAt: expect.any(Date) }, { deletedAt: null, toolName: 'report' }])
  })
})

describe('a call that has lost its right to write', () => {
  it('makes nothing when a newer attempt has begun, which does', async () => {
    const { id, run, rows } = await createCalls(create('report'))
    const late = beforeChange(() => run(0, deps, attempt(2)))
    await expect(run(0, late)).rejects.toThrow('newer attempt')
    expect(await resultsOf(id)).toMatchObject([{ name: 'report' }])
    expect(await rows()).toHaveLength(1)
  })

  it('makes nothing when it has its result', async () => {
    const { run, rows, turn } = await createCalls(create('report'))
    await expect(
      run(
        0,
        beforeChange(() => failTool(deps, turn, 1, 0)),
      ),
    ).rejects.toThrow('newer attempt')
    expect(await rows()).toEqual([])
  })

  it('makes nothing when its turn has ended', async () => {
    const { id, run, rows } = await createCalls(create('report'))
    expect(
      await run(
        0,
        beforeChange(() => cancelTurns(deps, ANYBODY, toUuid(id))),
      ),
    ).toEqual({ outcome: 'ended' })
    expect(await rows()).toEqual([])
  })

  it('leaves no schedule of a session that is deleted at the same time', async () => {
    for (let round = 0; round < 5; round++) {
      const calls = await createCalls(create('a'), create('b'), create('c'))
      const running = [0, 1, 2].map((n) => calls.run(n).catch(() => {}))
      await Promise.all([
        ...running.slice(round % 3),
        call(service.url, 'DELETE', `/v1/sessions/${calls.id}`),
        ...running,
      ])
      expect(await calls.rows()).toEqual([])
      const left = await deps.db.schedule.findMany({ where: { OR: calls.names.map((name) => ({ name })) } })
      expect(left).toEqual([])
    }
  })
})

it('a change waits for one of another process', async () => {
  const { id, run } = await createCalls(create('report'))
  let tries = 0
  const db = deps.db.$extends({
    query: {
      $queryRaw: ({ args, query }) => {
        if (args.sql.includes('claim_session_write')) tries++
        return query(args)
      },
    },
  })
  let running: Promise<unknown> = Promise.resolve()
  await deps.db.$transaction(
    async (tx) => {
      await tx.$queryRaw`SELECT 1 FROM organizations WHERE id = ${ANYBODY.organizationId}::uuid FOR NO KEY UPDATE`
      running = run(0, { ...deps, db: db as unknown as Deps['db'] })
      // The first try has given up its locks after a second.
      await waitFor(async () => tries > 1, 'the change to be tried again')
    },
    { timeout: 30_000 },
  )
  await running
  expect(await resultsOf(id)).toMatchObject([{ name: 'report' }])
})
