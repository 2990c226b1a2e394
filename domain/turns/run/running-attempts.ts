import { rejectOnAbort } from '../../../lib/reject-on-abort.ts'
import { createShares } from '../../../lib/shares.ts'
import { sleep } from '../../../lib/sleep.ts'
import type { PlannedTool, TurnErrorCode, TurnReport } from '../../../workflows/messages.ts'
import type { TurnPlace } from '../turn-place.ts'

/** One attempt at a step of a turn. */
export type Attempt = {
  /**
   * Orders the attempts of a step: the server time in ms at which Temporal scheduled the activity. Below zero for an
   * attempt that has begun without one, as minus the number of its process (`RunningAttempts`): it only takes a step that
   * nobody has claimed, and the step is its process's while that lives. It rises when an activity takes the attempt over.
   */
  readonly fence: number
  /** Settles when the fence has been raised, while that is under way. */
  readonly raising?: Promise<unknown> | undefined
  signal: AbortSignal
  /** True for an activity that leaves the step to the living process in which it has begun without one. */
  mayHandOver?: boolean
  /** Set for an attempt that begins before Temporal knows of the turn. The step ends only after that. */
  early?: {
    /** True when the step is the attempt's own from the beginning. */
    holdsStep: boolean
    /** Called when the step is claimed. */
    claimed(): void
    isKnown: boolean
    known: Promise<void>
  }
}

/** Outcome of a reason step. */
export type Reasoned =
  | { outcome: 'answered'; report?: TurnReport }
  /** The model called tools; `model` is its name. */
  | { outcome: 'act'; model: string; runs: PlannedTool[]; asks: boolean }
  /** The turn is over; nothing more may be written. */
  | { outcome: 'ended' }
  | { outcome: 'failed'; code: TurnErrorCode }
  /** The model failed for the n-th time in a row and will be asked again. */
  | { outcome: 'retry'; failures: number; afterMs: number }
  /** The step is another attempt's. `process` is set if a living process has begun it. */
  | { outcome: 'claimed_elsewhere'; process?: number }

/**
 * Attempts at reason steps that run in this process. Their waiters come and go: the workflow's local activity waits for a
 * moment, the activity to the end. An attempt may begin before Temporal knows of its turn. It has one of the process's
 * places, which owners share.
 */
export type RunningAttempts = {
  /** Random number of this process. Early attempts here claim their steps under the fence of minus this number. */
  readonly process: number
  /**
   * Reserves a place for an early attempt whose step is to be claimed under `fence`. Undefined when none would begin: see
   * `beginEarly`. Release it once the attempt has begun, or will not.
   */
  reserve(owner: string): { fence: number; release(): void } | undefined
  /**
   * Begins the first step of a turn that has just become its session's next one, in the process that made it so.
   * Undefined when the step is left to the workflow: no worker polls here, the owner has enough places, or the last
   * workflow could not be started.
   */
  beginEarly(turn: TurnPlace, early: Early): EarlyAttempt | undefined
  /** Reserves a place for a step that waits for one. Undefined when its owner gets none here. */
  reserveWaiting(owner: string): (() => void) | undefined
  /** Says whose steps wait: for a moment, nothing of theirs begins here but those, in their order. */
  letWait(owners: ReadonlySet<string>): void
  /** Begins a step whose workflow waits for a place, and for which one is reserved. Undefined when it runs here already. */
  beginWaiting(turn: TurnPlace, iteration: number, owner: string): EarlyAttempt | undefined
  /**
   * Joins the attempt at a step that runs here, or begins one, and waits a moment for its outcome. Rejects only when the
   * signal aborts.
   */
  begin(turn: TurnPlace, iteration: number, owner: string, signal: AbortSignal): Promise<Begun>
  /**
   * Leads the attempt at a step that runs here to its end, under a newer fence. Undefined when there is none, or when
   * another process has taken the step meanwhile.
   */
  adopt(turn: TurnPlace, iteration: number, by: Attempt): Promise<Reasoned | undefined>
  /** Takes a place for an attempt that an activity makes by itself. The result gives it back. */
  occupy(owner: string): (() => void) | undefined
  /** Reports whether a worker of this process polls. A polling worker reopens closed attempts. */
  setPolling(polls: boolean): void
  /** Reports whether the latest start of a workflow succeeded. */
  reportStart(hasSucceeded: boolean): void
  /** Begins nothing more, and aborts the attempts that no activity waits for. */
  close(): void
  /** Turns of attempts whose expected activity has not come. Each is reported once in a while. */
  unattended(): string[]
  /** Whether an attempt of the turn still expects its activity. */
  isUnattended(turnId: string): boolean
  /** True between `close` and the next worker. */
  isClosed(): boolean
}

/** Owner of a turn that begins early. `holdsStep`: its step has been claimed under the fence of early attempts. */
export type Early = { owner: string; holdsStep?: boolean }

/**
 * Result of beginning a step. `unfinished`: the activity continues the step, on `process` if set. All failures are left
 * to the activity too, which counts and reports them. `full`: there is no place for its owner.
 */
export type Begun =
  | Extract<Reasoned, { outcome: 'answered' | 'act' | 'ended' }>
  | { outcome: 'unfinished'; process?: number }
  | { outcome: 'full' }

export type EarlyAttempt = {
  /** Resolves when the attempt has claimed the step, or never will. */
  claimed: Promise<void>
  /** Reports that Temporal has the turn's workflow: the step may end. */
  acknowledge(): void
  /** Resolves when the attempt is over, or its activity waits for it: Temporal has less to do with the turn from then on. */
  goneOn: Promise<void>
  /** Aborts when the attempt is over. */
  over: AbortSignal
}

type Running = {
  fence: number
  raising?: Promise<boolean> | undefined
  outcome: Promise<Reasoned>
  abort: AbortController
  /** Set for an early attempt: see `EarlyAttempt`. Also called for a waiter, which proves that Temporal has the workflow. */
  acknowledge?: () => void
  goneOn?: () => void
  /** Number of waiters for the outcome. */
  waiting: number
  /** True when the record has the outcome. */
  isRecorded?: boolean
  /** The activity that leads the attempt. Its cancellation is the attempt's. */
  leader?: Attempt
  /** Runs while nobody waits. */
  unattended?: NodeJS.Timeout
  /** Time at which the expected activity counts as lost. */
  lostAt?: number | undefined
}

type Options = {
  run: (turn: TurnPlace, iteration: number, attempt: Attempt) => Promise<Reasoned>
  /** Raises the fence of a step in the record; false when another attempt has taken the step. */
  raise: (turn: TurnPlace, iteration: number, fences: { from: number; to: number }) => Promise<boolean>
  /** Number of attempts at once. */
  places: number
  handOverMs?: number
  unattendedMs?: number
  recordedMs?: number
}

/** Time for which a workflow task waits for an attempt. Its own limit is 4 s. */
const HAND_OVER_MS = 2500
/** The same for an owner with many attempts, whose slow models would otherwise take the slots of workflow tasks. */
const BUSY_HAND_OVER_MS = 100
const BUSY = 100
/** Time in which an attempt's activity comes. Later, it may be lost. */
const ADOPT_LIMIT_MS = 4000
/** Time after which a lost activity is looked for again. */
const LOST_RECHECK_MS = 10_000
/** Time for which waiting steps go first, unless `letWait` is called again. */
const WAIT_MS = 3000
/** Time for which an attempt goes on, and its outcome is kept, while nobody waits for it: Temporal may be away. */
const UNATTENDED_MS = 120_000
/** The same for an outcome that is in the record, too. It saves a query, and holds the place of another attempt. */
const RECORDED_MS = 2000
/** Range of process numbers: exact as JavaScript numbers, and large enough to be unique. */
const PROCESS_NUMBERS = 2 ** 48

export function createRunningAttempts({
  run,
  raise,
  places,
  handOverMs = HAND_OVER_MS,
  unattendedMs = UNATTENDED_MS,
  recordedMs = RECORDED_MS,
}: Options): RunningAttempts {
  const attempts = new Map<string, Running>()
  const process = 1 + Math.floor(Math.random() * PROCESS_NUMBERS)
  const shares = createShares(places)
  let polls = false
  let canStart = true
  let isClosed = false

  const keyOf = ({ turnId }: TurnPlace, iteration: number) => `${turnId}/${iteration}`
  const forget = (key: string, running: Running) => {
    clearTimeout(running.unattended)
    if (attempts.get(key) === running) attempts.delete(key)
  }
  const stop = (key: string, running: Running, why: string) => {
    running.abort.abort(new Error(why))
    forget(key, running)
  }
  const watch = (key: string, running: Running) => {
    clearTimeout(running.unattended)
    if (running.waiting > 0 || attempts.get(key) !== running) return
    // The activity that is to come has to be missed first.
    const keptMs =
      running.lostAt === undefined ? recordedMs : Math.max(recordedMs, ADOPT_LIMIT_MS + LOST_RECHECK_MS / 2)
    const ms = running.isRecorded ? keptMs : unattendedMs
    running.unattended = setTimeout(() => stop(key, running, 'nobody waits for the attempt'), ms).unref()
  }

  const mayBeginEarly = () => polls && canStart && !isClosed
  let waiting: { owners: ReadonlySet<string>; untilMs: number } = { owners: new Set(), untilMs: 0 }
  /** Takes a place for a new step, unless older steps of the owner wait for one. */
  const take = (owner: string) => {
    const goesLater = waiting.owners.has(owner) && performance.now() < waiting.untilMs
    return goesLater ? undefined : shares.take(owner)
  }
  const add = (key: string, leave: () => void, begin: (attempt: Attempt) => Promise<Reasoned>): Running => {
    const abort = new AbortController()
    const running: Running = {
      fence: -process,
      abort,
      waiting: 0,
      outcome: Promise.resolve().then(() => begin(attempt)),
    }
    const attempt: Attempt = {
      get fence() {
        return running.fence
      },
      get raising() {
        return running.raising
      },
      signal: abort.signal,
    }
    attempts.set(key, running)
    running.outcome.then(leave, leave)
    running.outcome.then(
      ({ outcome }) => {
        running.isRecorded = outcome !== 'failed' && outcome !== 'retry'
        watch(key, running)
      },
      () => forget(key, running),
    )
    return running
  }

  /** Waits with `wait` for an attempt's outcome. */
  const attend = async <T>(key: string, running: Running, wait: () => Promise<T>): Promise<T> => {
    clearTimeout(running.unattended)
    running.waiting++
    try {
      return await wait()
    } finally {
      running.waiting--
      watch(key, running)
    }
  }

  /**
   * Raises an attempt's fence, one raise after the other. The attempt keeps its fence while the record cannot be
   * reached.
   */
  const raiseTo = (turn: TurnPlace, iteration: number, running: Running, to: number): Promise<boolean> => {
    const raising = (running.raising ?? Promise.resolve(true)).then(async (isOwn) => {
      const { fence: from } = running
      if (!isOwn || to <= from) return isOwn
      try {
        const isRaised = await raise(turn, iteration, { from, to })
        if (isRaised) running.fence = to
        return isRaised
      } catch {
        return true
      }
    })
    running.raising = raising
    return raising
  }

  const addEarly = (turn: TurnPlace, iteration: number, leave: () => void, holdsStep: boolean): EarlyAttempt => {
    const key = keyOf(turn, iteration)
    const claimed = Promise.withResolvers<void>()
    const known = Promise.withResolvers<void>()
    const goneOn = Promise.withResolvers<void>()
    const over = new AbortController()
    const early = { holdsStep, claimed: claimed.resolve, isKnown: false, known: known.promise }
    if (holdsStep) claimed.resolve()
    const running = add(key, leave, (attempt) => run(turn, iteration, Object.assign(attempt, { early })))
    const end = () => {
      claimed.resolve()
      goneOn.resolve()
      over.abort()
    }
    running.outcome.then(end, end)
    const acknowledge = () => {
      early.isKnown = true
      known.resolve()
      watch(key, running)
    }
    running.acknowledge = acknowledge
    running.goneOn = goneOn.resolve
    return { claimed: claimed.promise, acknowledge, goneOn: goneOn.promise, over: over.signal }
  }

  return {
    process,
    reserve: (owner) => {
      const release = mayBeginEarly() ? take(owner) : undefined
      return release && { fence: -process, release }
    },
    beginEarly: (turn, { owner, holdsStep = false }) => {
      if (isClosed || !(holdsStep || mayBeginEarly()) || attempts.has(keyOf(turn, 1))) return undefined
      // The place that was reserved is released once the attempt has its own.
      const leave = holdsStep ? shares.takeAnyway(owner) : take(owner)
      return leave && addEarly(turn, 1, leave, holdsStep)
    },
    reserveWaiting: (owner) => (polls && !isClosed ? shares.take(owner) : undefined),
    letWait: (owners) => {
      waiting = { owners, untilMs: performance.now() + WAIT_MS }
    },
    beginWaiting: (turn, iteration, owner) => {
      if (isClosed || attempts.has(keyOf(turn, iteration))) return undefined
      return addEarly(turn, iteration, shares.takeAnyway(owner), false)
    },
    begin: async (turn, iteration, owner, signal) => {
      const key = keyOf(turn, iteration)
      let running = attempts.get(key)
      if (running === undefined) {
        if (isClosed) return { outcome: 'unfinished' }
        const leave = take(owner)
        if (leave === undefined) return { outcome: 'full' }
        running = add(key, leave, (attempt) => run(turn, iteration, attempt))
      }
      const { outcome } = running
      running.acknowledge?.()
      const ms = shares.heldBy(owner) > BUSY ? Math.min(BUSY_HAND_OVER_MS, handOverMs) : handOverMs
      const reasoned = await attend(key, running, () => settledWithin(outcome, ms, signal))
      if (reasoned === 'rejected') return { outcome: 'unfinished' }
      if (reasoned === 'late' && isClosed) {
        stop(key, running, 'the worker stops')
        return { outcome: 'unfinished' }
      }
      if (reasoned === 'late' || reasoned.outcome === 'failed' || reasoned.outcome === 'retry') {
        running.lostAt = performance.now() + ADOPT_LIMIT_MS
        return { outcome: 'unfinished', process }
      }
      forget(key, running)
      return reasoned.outcome === 'claimed_elsewhere' ? { ...reasoned, outcome: 'unfinished' } : reasoned
    },
    adopt: async (turn, iteration, by) => {
      const key = keyOf(turn, iteration)
      const running = attempts.get(key)
      if (running === undefined) return undefined
      running.acknowledge?.()
      running.goneOn?.()
      running.lostAt = undefined
      running.leader = by
      const cancel = () => {
        // Temporal may have given up this activity because its process was frozen, and sent another one.
        if (running.leader === by) running.abort.abort(by.signal.reason)
      }
      if (by.signal.aborted) cancel()
      by.signal.addEventListener('abort', cancel)
      return attend(key, running, async () => {
        try {
          if (!(await raiseTo(turn, iteration, running, by.fence))) {
            stop(key, running, 'another attempt has taken the step')
            return undefined
          }
          const reasoned = await running.outcome
          forget(key, running)
          return reasoned.outcome === 'claimed_elsewhere' ? undefined : reasoned
        } finally {
          by.signal.removeEventListener('abort', cancel)
          running.lostAt = performance.now() + ADOPT_LIMIT_MS
        }
      })
    },
    setPolling: (now) => {
      polls = now
      if (now) isClosed = false
    },
    reportStart: (hasSucceeded) => {
      canStart = hasSucceeded
    },
    occupy: shares.take,
    isUnattended: (turnId) =>
      [...attempts].some(
        ([key, { waiting, lostAt }]) => key.startsWith(turnId) && waiting === 0 && lostAt !== undefined,
      ),
    unattended: () => {
      const now = performance.now()
      const lost = [...attempts].filter(([, { waiting, lostAt = now }]) => waiting === 0 && lostAt < now)
      for (const [, running] of lost) running.lostAt = now + LOST_RECHECK_MS
      return lost.map(([key]) => key.slice(0, key.indexOf('/')))
    },
    isClosed: () => isClosed,
    close: () => {
      isClosed = true
      for (const [key, running] of attempts) if (running.waiting === 0) stop(key, running, 'the worker stops')
    },
  }
}

/** Resolves with what `work` resolves with, if it does so within `ms`. Rejects when the signal aborts. */
async function settledWithin<T>(work: Promise<T>, ms: number, signal: AbortSignal): Promise<T | 'rejected' | 'late'> {
  const over = new AbortController()
  const late = sleep(ms, over.signal).then(() => 'late' as const)
  try {
    return await rejectOnAbort(signal, Promise.race([work.catch(() => 'rejected' as const), late]))
  } finally {
    over.abort()
  }
}
