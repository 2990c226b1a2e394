import type { Deps } from '../../../domain/deps.ts'
import { DEFAULT_ORGANIZATION_UUID } from '../../../domain/kit/ids.ts'
import { createMessage } from '../../../domain/messages/create.ts'
import { failTurn } from '../../../domain/turns/control/fail-turn.ts'
import { repeatLostNotices } from '../../../domain/turns/sweep/lost-notices.ts'
import { startLostTurns } from '../../../domain/turns/sweep/lost-starts.ts'
import { failOrphans } from '../../../domain/turns/sweep/orphans.ts'
import type { TurnPlace } from '../../../domain/turns/turn-place.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import { ANYBODY, withWorkflows } from '../../support/by-hand.ts'
import { createSession, textMessage } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { startService, type TestService } from '../../support/service.ts'

const AT_ONCE = { graceMs: 0, repeatMs: 60_000, limit: 100 }
const actor = ANYBODY

let service: TestService
let deps: Deps
let started: string[] = []
beforeEach(async () => {
  service = await startService({ worker: false })
  started = []
  // Starting a workflow always fails as if Temporal were away. `started` collects the turns for which it was tried.
  const startTurn = async ({ turnId }: TurnPlace) => {
    started.push(turnId)
    throw new Error('Temporal is away')
  }
  deps = { ...withWorkflows(service.platform.deps, { startTurn }), owners: { ownerOf: async () => 'an owner' } }
})
afterEach(() => service.stop())

async function createTurns(count: number): Promise<TurnPlace[]> {
  const id = await createSession(service.url)
  const turns: TurnPlace[] = []
  for (let turn = 0; turn < count; turn++) {
    const { turnUuid } = await createMessage(
      deps,
      actor,
      toUuid(id),
      textMessage('Hello') as Parameters<typeof createMessage>[3],
    )
    turns.push({ organizationId: DEFAULT_ORGANIZATION_UUID, sessionId: toUuid(id), turnId: turnUuid })
  }
  return turns
}

async function sweep(swept = new Map<string, number>(), options = AT_ONCE): Promise<string[]> {
  // What was started before has been tried by then.
  await new Promise(setImmediate)
  started = []
  await startLostTurns(deps, swept, options)
  await new Promise(setImmediate)
  return started.sort()
}

const idsOf = (...turns: (TurnPlace | undefined)[]): string[] => turns.map((turn) => turn?.turnId ?? '').sort()

describe('the sweeper', () => {
  it('starts the head of each queue, and nothing behind it', async () => {
    const [first, second] = [await createTurns(3), await createTurns(2)]
    expect(await sweep()).toEqual(idsOf(first[0], second[0]))
    await failTurn(deps, first[0] as TurnPlace, 1, 'timeout')
    expect(await sweep()).toEqual(idsOf(first[1], second[0]))
  })

  it('starts nothing behind a turn that runs', async () => {
    const turns = await createTurns(2)
    await deps.db.turn.update({ where: { id: turns[0]?.turnId ?? '' }, data: { status: 'active' } })
    expect(await sweep()).toEqual([])
  })

  it('starts nothing that has ended', async () => {
    const turns = await createTurns(1)
    await failTurn(deps, turns[0] as TurnPlace, 1, 'timeout')
    expect(await sweep()).toEqual([])
  })

  it('leaves a new turn to the process that created it', async () => {
    await createTurns(1)
    expect(await sweep(new Map(), { ...AT_ONCE, graceMs: 60_000 })).toEqual([])
  })

  it('tries a turn again only after a while', async () => {
    const turns = await createTurns(1)
    const swept = new Map<string, number>()
    expect(await sweep(swept)).toEqual(idsOf(turns[0]))
    expect(await sweep(swept)).toEqual([])
    swept.set(turns[0]?.turnId ?? '', performance.now() - AT_ONCE.repeatMs - 1)
    expect(await sweep(swept)).toEqual(idsOf(turns[0]))
  })

  it('starts as many as it may, the oldest first', async () => {
    const turns = [...(await createTurns(1)), ...(await createTurns(1)), ...(await createTurns(1))]
    const swept = new Map<string, number>()
    expect(await sweep(swept, { ...AT_ONCE, limit: 2 })).toEqual(idsOf(turns[0], turns[1]))
    expect(await sweep(swept, { ...AT_ONCE, limit: 2 })).toEqual(idsOf(turns[2]))
  })
})

describe('a notice to a workflow', () => {
  it('is repeated only when the attempt before is over', async () => {
    const [turn] = await createTurns(1)
    await deps.db.turn.update({ where: { id: turn?.turnId ?? '' }, data: { noticeDueAt: new Date(0) } })
    const asked: PromiseWithResolvers<void>[] = []
    const resumeTurn = () => {
      asked.push(Promise.withResolvers())
      return asked.at(-1)?.promise ?? Promise.resolve()
    }
    const underWay = new Set<string>()
    const repeat = async () => {
      await repeatLostNotices(withWorkflows(deps, { resumeTurn }), underWay)
      await new Promise(setImmediate)
    }
    await repeat()
    await repeat()
    expect(asked).toHaveLength(1)
    asked[0]?.reject(new Error('Temporal is away'))
    await new Promise(setImmediate)
    await repeat()
    expect(asked).toHaveLength(2)
  })
})

describe('several workers', () => {
  it.each<[string, Prisma.TurnUpdateManyMutationInput, (deps: Deps) => Promise<unknown>]>([
    ['lost starts', {}, (of) => startLostTurns(of, new Map(), AT_ONCE)],
    ['orphans', { status: 'active', startedAt: new Date(0) }, (of) => failOrphans(of, null)],
    ['lost notices', { noticeDueAt: new Date(0) }, (of) => repeatLostNotices(of, new Set())],
  ])('share %s, and take over the share of a worker that dies', async (_, state, sweepOnce) => {
    const turns = (await Promise.all([1, 2, 3, 4, 5, 6].map(() => createTurns(1)))).flat()
    await deps.db.turn.updateMany({ data: state })
    await deps.db
      .$executeRaw`INSERT INTO processes (number, seen_at) SELECT n, 'infinity' FROM generate_series(1, 2) AS n`
    const seen: string[] = []
    // Temporal answers none of them.
    const see = (id: string) => new Promise<never>(() => seen.push(id))
    const workflows = {
      startTurn: ({ turnId }: { turnId: string }) => see(turnId),
      resumeTurn: see,
      readTurnState: async (id: string) => {
        seen.push(id)
        return 'running' as const
      },
    }
    const sweepAs = async (process: number) => {
      await sweepOnce({ ...withWorkflows(deps, workflows), attempts: { ...deps.attempts, process } })
      await new Promise(setImmediate)
      return seen.splice(0)
    }
    expect([...(await sweepAs(1)), ...(await sweepAs(2))].sort()).toEqual(idsOf(...turns))
    // The lease of a process that has died runs out in three seconds.
    await deps.db.$executeRaw`UPDATE processes SET seen_at = now() - interval '3 seconds' WHERE number = 2`
    expect((await sweepAs(1)).sort()).toEqual(idsOf(...turns))
  })
})
