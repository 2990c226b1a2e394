import type { Attempt, Reasoned } from '../../../domain/turns/run/running-attempt.ts'
import { createRunningAttempts } from '../../../domain/turns/run/running-attempts.ts'

const TURN = { organizationId: 'o', sessionId: 's', turnId: 't' }
const OTHER = { ...TURN, turnId: 'u' }
const ANSWERED: Reasoned = { outcome: 'answered' }
const never = new AbortController().signal
const HAND_OVER_MS = 30
const UNATTENDED_MS = 60
const RECORDED_MS = 20
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

type Run = { turnId: string; iteration: number; attempt: Attempt; end: PromiseWithResolvers<Reasoned> }

/** Owner of all turns here. */
const owner = 'anybody'

function createSite(places = 3) {
  const runs: Run[] = []
  const options = { isOwn: true }
  const raised: { from: number; to: number }[] = []
  const attempts = createRunningAttempts({
    run: ({ turnId }, iteration, attempt) => {
      const end = Promise.withResolvers<Reasoned>()
      attempt.signal.addEventListener('abort', () => end.reject(attempt.signal.reason))
      runs.push({ turnId, iteration, attempt, end })
      return end.promise
    },
    raise: async (_turn, _iteration, fences) => {
      raised.push(fences)
      return options.isOwn
    },
    places,
    handOverMs: HAND_OVER_MS,
    unattendedMs: UNATTENDED_MS,
    recordedMs: RECORDED_MS,
  })
  attempts.setPolling(true)
  const begin = (turn = TURN, signal = never, iteration = 1) => attempts.begin(turn, iteration, owner, signal)
  const adopt = (fence: number, signal = never) => attempts.adopt(TURN, 1, { fence, signal })
  return { attempts, runs, raised, options, begin, adopt }
}

/** Lets promises that are already settled take effect. */
const settle = () => new Promise((resolve) => setImmediate(resolve))
const last = (runs: Run[]): Run => runs.at(-1) as Run

describe('a step that is begun', () => {
  it.each([ANSWERED, { outcome: 'ended' }, { outcome: 'act', model: 'm', runs: [], asks: true }] satisfies Reasoned[])(
    'has the outcome %j in time, and is begun anew if it is begun again',
    async (outcome) => {
      const { begin, runs } = createSite()
      const begun = begin()
      await settle()
      last(runs).end.resolve(outcome)
      expect(await begun).toEqual(outcome)
      void begin()
      await settle()
      expect(runs).toHaveLength(2)
    },
  )

  it.each([
    { outcome: 'retry', failures: 1, afterMs: 7 },
    { outcome: 'failed', code: 'no_model' },
  ] satisfies Reasoned[])(
    'leaves the failure %j to the activity, which gets it without another attempt',
    async (outcome) => {
      const { attempts, begin, runs, adopt } = createSite()
      const begun = begin()
      await settle()
      last(runs).end.resolve(outcome)
      expect(await begun).toEqual({ outcome: 'unfinished', process: attempts.process })
      expect(await adopt(9)).toEqual(outcome)
      expect(runs).toHaveLength(1)
      expect(await adopt(10)).toBeUndefined()
    },
  )

  it('is the business of an activity anywhere when it throws', async () => {
    const { begin, runs, adopt } = createSite()
    const begun = begin()
    await settle()
    last(runs).end.reject(new Error('no database'))
    expect(await begun).toEqual({ outcome: 'unfinished' })
    expect(await adopt(9)).toBeUndefined()
  })

  it.each([
    ['the process in which it has begun', { process: 77 }],
    ['an activity, when that process has died', {}],
  ])('is left to %s', async (_whom, holder) => {
    const { begin, runs, adopt } = createSite()
    const begun = begin()
    await settle()
    last(runs).end.resolve({ outcome: 'claimed_elsewhere', ...holder })
    expect(await begun).toEqual({ outcome: 'unfinished', ...holder })
    const again = begin()
    const adopted = adopt(9)
    await settle()
    last(runs).end.resolve({ outcome: 'claimed_elsewhere', ...holder })
    expect([await again, await adopted]).toEqual([{ outcome: 'unfinished', ...holder }, undefined])
  })

  it('goes on with the activity when it takes longer, under the activity’s fence', async () => {
    const { attempts, begin, runs, raised, adopt } = createSite()
    expect(await begin()).toEqual({ outcome: 'unfinished', process: attempts.process })
    expect(last(runs).attempt.fence).toBe(-attempts.process)
    const adopted = adopt(9)
    await last(runs).attempt.raising
    expect(last(runs).attempt.fence).toBe(9)
    expect(raised).toEqual([{ from: -attempts.process, to: 9 }])
    await pause(2 * UNATTENDED_MS)
    last(runs).end.resolve(ANSWERED)
    expect(await adopted).toEqual(ANSWERED)
    expect(runs).toHaveLength(1)
  })

  it('is not gone on with when another attempt has taken it', async () => {
    const { attempts, begin, runs, options, adopt } = createSite()
    await begin()
    options.isOwn = false
    expect(await adopt(9)).toBeUndefined()
    expect(last(runs).attempt.fence).toBe(-attempts.process)
    expect(last(runs).attempt.signal.reason).toEqual(new Error('another attempt has taken the step'))
  })

  it('ends with the activity that leads it, and not with an earlier one', async () => {
    const { begin, runs, adopt } = createSite()
    await begin()
    const [first, second] = [new AbortController(), new AbortController()]
    const adopted = [adopt(9, first.signal), adopt(10, second.signal)]
    const ended = Promise.all(adopted.map((one) => one.catch(String)))
    first.abort(new Error('given up'))
    expect(last(runs).attempt.signal.aborted).toBe(false)
    second.abort(new Error('cancelled'))
    expect(await ended).toEqual(['Error: cancelled', 'Error: cancelled'])
  })

  it('is aborted when no activity comes', async () => {
    const { begin, runs, adopt } = createSite()
    await begin()
    await pause(2 * UNATTENDED_MS)
    expect(last(runs).attempt.signal.reason).toEqual(new Error('nobody waits for the attempt'))
    expect(await adopt(9)).toBeUndefined()
  })

  it('is no longer waited for when the local activity is cancelled', async () => {
    const { begin, runs } = createSite()
    const cancelled = new AbortController()
    const begun = begin(TURN, cancelled.signal)
    cancelled.abort(new Error('evicted'))
    await expect(begun).rejects.toThrow('evicted')
    expect(last(runs).attempt.signal.aborted).toBe(false)
  })

  it('finds no place when enough attempts run', async () => {
    const { begin, runs } = createSite(1)
    await begin()
    expect(await begin(OTHER)).toEqual({ outcome: 'full' })
    expect(runs).toHaveLength(1)
  })

  it('goes on elsewhere when its worker stops', async () => {
    const { attempts, begin, runs } = createSite()
    const begun = begin()
    const other = begin(OTHER)
    await settle()
    attempts.close()
    runs[1]?.end.resolve(ANSWERED)
    expect(await other).toEqual(ANSWERED)
    expect(await begun).toEqual({ outcome: 'unfinished' })
    expect(runs[0]?.attempt.signal.reason).toEqual(new Error('the worker stops'))
    expect(await begin()).toEqual({ outcome: 'unfinished' })
  })
})

describe('an early attempt', () => {
  it('is joined', async () => {
    const { attempts, begin, runs } = createSite()
    const early = attempts.beginEarly(TURN, { owner })
    await settle()
    const { attempt, end } = last(runs)
    expect(attempt).toMatchObject({ fence: -attempts.process, early: { isKnown: false } })
    expect(attempts.process).toBeGreaterThan(0)
    early?.acknowledge()
    expect(attempt.early?.isKnown).toBe(true)
    await attempt.early?.known
    const begun = begin()
    end.resolve(ANSWERED)
    expect(await begun).toEqual(ANSWERED)
    expect(early?.over.aborted).toBe(true)
    expect(runs).toHaveLength(1)
  })

  it('has its workflow started when it has claimed the step, or when it never will', async () => {
    const { attempts, runs } = createSite()
    const [first, second] = [attempts.beginEarly(TURN, { owner }), attempts.beginEarly(OTHER, { owner })]
    await settle()
    runs[0]?.attempt.early?.claimed()
    runs[1]?.end.reject(new Error('no database'))
    await Promise.all([first?.claimed, second?.claimed])
    expect([first?.over.aborted, second?.over.aborted]).toEqual([false, true])
  })

  it('has its workflow started at once when the step has been claimed for it', async () => {
    const { attempts, runs } = createSite()
    expect(attempts.reserve(owner)?.fence).toBe(-attempts.process)
    await attempts.beginEarly(TURN, { owner, holdsStep: true })?.claimed
    await settle()
    expect(last(runs).attempt.early?.holdsStep).toBe(true)
  })

  it('has a place of its own from the moment at which its step is claimed', () => {
    const { attempts } = createSite(2)
    const places = [attempts.reserve(owner), attempts.reserve(owner)]
    expect([attempts.reserve(owner), attempts.beginEarly(OTHER, { owner })]).toEqual([undefined, undefined])
    expect(attempts.beginEarly(TURN, { owner, holdsStep: true })).toBeDefined()
    for (const place of places) place?.release()
    expect(attempts.reserve(owner)).toBeDefined()
  })

  it('may end when anybody comes to it, because Temporal has the workflow then', async () => {
    const { attempts, begin, runs } = createSite()
    attempts.beginEarly(TURN, { owner })
    void begin()
    await settle()
    expect(last(runs).attempt.early?.isKnown).toBe(true)
  })

  it('may go on while Temporal is away, and is aborted if nobody comes once it has the workflow', async () => {
    const { attempts, runs } = createSite()
    const early = attempts.beginEarly(TURN, { owner })
    await pause(2 * UNATTENDED_MS)
    expect(last(runs).attempt.signal.aborted).toBe(false)
    early?.acknowledge()
    await pause(2 * UNATTENDED_MS)
    expect(last(runs).attempt.signal.aborted).toBe(true)
  })

  it('keeps its outcome for an activity, for some time', async () => {
    const { attempts, runs, adopt } = createSite()
    attempts.beginEarly(TURN, { owner })?.acknowledge()
    await settle()
    last(runs).end.resolve(ANSWERED)
    await settle()
    expect(await adopt(9)).toEqual(ANSWERED)
    attempts.beginEarly(TURN, { owner })?.acknowledge()
    await settle()
    last(runs).end.resolve(ANSWERED)
    await pause(2 * RECORDED_MS)
    expect(await adopt(10)).toBeUndefined()
  })

  it.each([
    { ended: ANSWERED },
    { ended: { outcome: 'ended' } as const },
    { ended: { outcome: 'retry', failures: 1, afterMs: 7 } as const },
  ])('gives its place back when it has $ended.outcome', async ({ ended }) => {
    const { attempts, runs } = createSite(1)
    attempts.beginEarly(TURN, { owner })?.acknowledge()
    await settle()
    expect(attempts.reserve(owner)).toBeUndefined()
    last(runs).end.resolve(ended)
    await settle()
    expect(attempts.reserve(owner)).toBeDefined()
  })

  it.each([
    ['no worker polls', ({ attempts }: ReturnType<typeof createSite>) => attempts.setPolling(false)],
    ['a workflow could not be started', ({ attempts }: ReturnType<typeof createSite>) => attempts.reportStart(false)],
    ['the worker stops', ({ attempts }: ReturnType<typeof createSite>) => attempts.close()],
    ['enough attempts run', ({ begin }: ReturnType<typeof createSite>) => void begin(OTHER)],
    ['one runs already', ({ attempts }: ReturnType<typeof createSite>) => void attempts.beginEarly(TURN, { owner })],
  ])('is not begun when %s', async (_when, happens) => {
    const site = createSite(1)
    happens(site)
    const before = site.runs.length
    expect(site.attempts.reserve(owner)).toBeUndefined()
    expect(site.attempts.beginEarly(TURN, { owner })).toBeUndefined()
    expect(site.runs).toHaveLength(before)
  })

  it('is begun again after a workflow could be started, and by a worker that polls again', () => {
    const { attempts } = createSite()
    attempts.reportStart(false)
    attempts.reportStart(true)
    expect(attempts.beginEarly(TURN, { owner })).toBeDefined()
    attempts.close()
    attempts.setPolling(true)
    expect(attempts.beginEarly(OTHER, { owner })).toBeDefined()
  })
})
