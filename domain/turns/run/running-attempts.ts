import { rejectOnAbort } from '../../../lib/reject-on-abort.ts'
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
  yields?: boolean
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
  /** The model failed for the n-th time in a row and is to be asked again. */
  | { outcome: 'retry'; failures: number; afterMs: number }
  /** The step is another attempt's: that of `process`, if such a one has begun it and lives. */
  | { outcome: 'elsewhere'; process?: number }

/**
 * Attempts at reason steps that run in this process, so that those who wait for them can come and go: the workflow's
 * local activity for a moment, the activity to the end. One may begin before Temporal knows of its turn.
 */
export type RunningAttempts = {
  /** Number of this process, at random: a claim under a fence of minus this number is that of an early attempt here. */
  readonly process: number
  /**
   * Reserves a place for an early attempt whose step is to be claimed under `fence`. Undefined when none would begin: see
   * `beginEarly`. Release it once the attempt has begun, or will not.
   */
  reserve(): { fence: number; release(): void } | undefined
  /**
   * Begins the first step of a turn that has just become its session's next one, in the process that made it so.
   * `holdsStep`: the step has been claimed under the fence of early attempts. Undefined when the step is left to the
   * workflow: no worker polls here, enough attempts run, or the last workflow could not be started.
   */
  beginEarly(turn: TurnPlace, holdsStep?: boolean): EarlyAttempt | undefined
  /**
   * Joins the attempt at a step that runs here, or begins one, and waits a moment for its outcome. Rejects only when the
   * signal aborts.
   */
  begin(turn: TurnPlace, iteration: number, signal: AbortSignal): Promise<Begun>
  /**
   * Leads the attempt at a step that runs here to its end, under a newer fence. Undefined when there is none, or when
   * another process has taken the step meanwhile.
   */
  adopt(turn: TurnPlace, iteration: number, by: Attempt): Promise<Reasoned | undefined>
  /** Reports whether a worker of this process polls. One that does opens what was closed. */
  useWorker(polls: boolean): void
  /** Reports whether the latest start of a workflow succeeded. */
  noteStart(hasSucceeded: boolean): void
  /** Begins nothing more, and aborts what no activity waits for. */
  close(): void
  /** True between `close` and the next worker. */
  isClosed(): boolean
}

/**
 * What has come of beginning a step. `unfinished`: the activity is to go on, in `process` if that is given. All failures
 * are left to the activity too, which counts and reports them.
 */
export type Begun =
  | Extract<Reasoned, { outcome: 'answered' | 'act' | 'ended' }>
  | { outcome: 'unfinished'; process?: number }

export type EarlyAttempt = {
  /** Resolves when the attempt has claimed the step, or never will. */
  claimed: Promise<void>
  /** Reports that Temporal has the turn's workflow: the step may end. */
  acknowledge(): void
  /** Aborts when the attempt is over. */
  over: AbortSignal
}

type Running = {
  fence: number
  raising?: Promise<boolean> | undefined
  outcome: Promise<Reasoned>
  abort: AbortController
  /** Set for an early attempt: see `EarlyAttempt`. Whoever waits for it shows that Temporal has the workflow, too. */
  acknowledge?: () => void
  /** Number of those who wait for the outcome. */
  waiting: number
  /** True when whoever comes later finds the outcome in the record. */
  isRecorded?: boolean
  /** The activity that leads the attempt. Its cancellation is the attempt's. */
  leader?: Attempt
  /** Runs while nobody waits. */
  unattended?: NodeJS.Timeout
}

type Options = {
  run: (turn: TurnPlace, iteration: number, attempt: Attempt) => Promise<Reasoned>
  /** Raises the fence of a step in the record; false when another attempt has taken the step. */
  raise: (turn: TurnPlace, iteration: number, fences: { from: number; to: number }) => Promise<boolean>
  maxRunning?: number
  handOverMs?: number
  unattendedMs?: number
  recordedMs?: number
}

/** Maximum number of attempts. Each may come to need an activity, so the worker has as many slots. */
export const MAX_RUNNING_ATTEMPTS = 200
/** Time for which a workflow task waits for an attempt. Its own limit is 4 s. */
const HAND_OVER_MS = 2500
/** Time for which an attempt goes on, and its outcome is kept, while nobody waits for it: Temporal may be away. */
const UNATTENDED_MS = 120_000
/** The same for an outcome that is in the record, too. It saves a query, and holds the place of another attempt. */
const RECORDED_MS = 2000
/** Numbers that add up exactly and that no other process has. */
const PROCESS_NUMBERS = 2 ** 48

export function createRunningAttempts({
  run,
  raise,
  maxRunning = MAX_RUNNING_ATTEMPTS,
  handOverMs = HAND_OVER_MS,
  unattendedMs = UNATTENDED_MS,
  recordedMs = RECORDED_MS,
}: Options): RunningAttempts {
  const attempts = new Map<string, Running>()
  const process = 1 + Math.floor(Math.random() * PROCESS_NUMBERS)
  let reserved = 0
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
    const ms = running.isRecorded ? recordedMs : unattendedMs
    running.unattended = setTimeout(() => stop(key, running, 'nobody waits for the attempt'), ms).unref()
  }

  const mayBeginEarly = () => polls && canStart && !isClosed && attempts.size + reserved < maxRunning
  const add = (key: string, begin: (attempt: Attempt) => Promise<Reasoned>): Running | undefined => {
    if (isClosed || attempts.size >= maxRunning) return undefined
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
    running.outcome.then(
      ({ outcome }) => {
        running.isRecorded = outcome !== 'failed' && outcome !== 'retry'
        watch(key, running)
      },
      () => forget(key, running),
    )
    return running
  }

  /** Waits with `wait` for what comes of an attempt. */
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

  /** Raises the fence of an attempt, one time after the other. While the record cannot be reached, it keeps its own. */
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

  return {
    process,
    reserve: () => {
      if (!mayBeginEarly()) return undefined
      reserved++
      return { fence: -process, release: () => void reserved-- }
    },
    beginEarly: (turn, holdsStep = false) => {
      const key = keyOf(turn, 1)
      if (!(holdsStep || mayBeginEarly()) || attempts.has(key)) return undefined
      const claimed = Promise.withResolvers<void>()
      const known = Promise.withResolvers<void>()
      const over = new AbortController()
      const early = { holdsStep, claimed: claimed.resolve, isKnown: false, known: known.promise }
      if (holdsStep) claimed.resolve()
      const running = add(key, (attempt) => run(turn, 1, Object.assign(attempt, { early })))
      if (running === undefined) return undefined
      const end = () => {
        claimed.resolve()
        over.abort()
      }
      running.outcome.then(end, end)
      const acknowledge = () => {
        early.isKnown = true
        known.resolve()
        watch(key, running)
      }
      running.acknowledge = acknowledge
      return { claimed: claimed.promise, acknowledge, over: over.signal }
    },
    begin: async (turn, iteration, signal) => {
      const key = keyOf(turn, iteration)
      const running = attempts.get(key) ?? add(key, (attempt) => run(turn, iteration, attempt))
      if (running === undefined) return { outcome: 'unfinished' }
      running.acknowledge?.()
      const reasoned = await attend(key, running, () => settledWithin(running.outcome, handOverMs, signal))
      if (reasoned === 'rejected') return { outcome: 'unfinished' }
      if (reasoned === 'late' && isClosed) {
        stop(key, running, 'the worker stops')
        return { outcome: 'unfinished' }
      }
      if (reasoned === 'late' || reasoned.outcome === 'failed' || reasoned.outcome === 'retry') {
        return { outcome: 'unfinished', process }
      }
      forget(key, running)
      return reasoned.outcome === 'elsewhere' ? { ...reasoned, outcome: 'unfinished' } : reasoned
    },
    adopt: async (turn, iteration, by) => {
      const key = keyOf(turn, iteration)
      const running = attempts.get(key)
      if (running === undefined) return undefined
      running.acknowledge?.()
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
          return reasoned.outcome === 'elsewhere' ? undefined : reasoned
        } finally {
          by.signal.removeEventListener('abort', cancel)
        }
      })
    },
    useWorker: (now) => {
      polls = now
      if (now) isClosed = false
    },
    noteStart: (hasSucceeded) => {
      canStart = hasSucceeded
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
