import type { TurnPlace } from '../turn-place.ts'
import { type AbandonedTurns, createAbandonedTurns } from './abandoned-turns.ts'
import { createAdmission } from './admission.ts'
import { EarlyStart } from './early-start.ts'
import { type Attempt, type KeepTimes, type Reasoned, RunningAttempt } from './running-attempt.ts'

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
  /** Reports whether a worker of this process polls. If so, attempts may begin again after `close`. */
  setPolling(polls: boolean): void
  /** Reports whether the latest start of a workflow succeeded. */
  reportStart(hasSucceeded: boolean): void
  /** Begins nothing more, and aborts the attempts that no activity waits for. */
  close(): void
  /** Turns of attempts whose expected activity has not come. Each is reported once in a while. */
  unattended(): string[]
  /** Watches attempts that activities make by themselves, too. */
  readonly abandoned: AbandonedTurns
  /** Whether an attempt of the turn still expects its activity. */
  isUnattended(turnId: string): boolean
  /** True between `close` and the next worker. */
  isClosed(): boolean
}

/** Owner of a turn that begins early. `holdsStep`: its step has been claimed under the fence of early attempts. */
export type Early = { owner: string; holdsStep?: boolean }

/**
 * Result of beginning a step. `unfinished`: the activity continues the step, on `process` if set. All failures are left
 * to the activity too, which counts and reports them. `full`: there is no place for its owner. `waits`: as many turns run as
 * may.
 */
export type Begun =
  | Extract<Reasoned, { outcome: 'answered' | 'act' | 'ended' | 'waits' }>
  | { outcome: 'unfinished'; process?: number }
  | { outcome: 'full' }

export type EarlyAttempt = {
  /** Resolves when the attempt has claimed the step, or never will. */
  claimed: Promise<void>
  /** Resolves when the model has begun to answer, a moment after it was asked, or when the attempt is over. */
  heard: Promise<void>
  /** Reports that Temporal has the turn's workflow: the step may end. */
  acknowledge(): void
  /** Resolves when the attempt is over, or its activity waits for it: Temporal has less to do with the turn from then on. */
  goneOn: Promise<void>
  /** Aborts when the attempt is over. */
  over: AbortSignal
}

type Options = {
  run: (turn: TurnPlace, iteration: number, attempt: Attempt) => Promise<Reasoned>
  /** Raises the fence of a step in the record; false when another attempt has taken the step. */
  raise: (turn: TurnPlace, iteration: number, fences: { from: number; to: number }) => Promise<boolean>
  /** Number of attempts at once. */
  places: number
  handOverMs?: number
} & Partial<KeepTimes>

/** Time for which a workflow task waits for an attempt. Its own limit is 2.5 s. */
const HAND_OVER_MS = 1300
/**
 * The same for an owner with many attempts when the process has many, whose slow models would otherwise take the slots of
 * workflow tasks.
 */
const BUSY_HAND_OVER_MS = 100
const BUSY = 100
const CROWDED = 250
const KEEP_TIMES: KeepTimes = { unattendedMs: 120_000, recordedMs: 2000 }
/** Range of process numbers: exact as JavaScript numbers, and large enough to be unique. */
const PROCESS_NUMBERS = 2 ** 48

export function createRunningAttempts({
  run,
  raise,
  places,
  handOverMs = HAND_OVER_MS,
  ...times
}: Options): RunningAttempts {
  const keep = { ...KEEP_TIMES, ...times }
  const attempts = new Map<string, RunningAttempt>()
  const abandoned = createAbandonedTurns()
  const process = 1 + Math.floor(Math.random() * PROCESS_NUMBERS)
  const admission = createAdmission(places)
  const { isClosed, mayBeginEarly } = admission

  const add = (turn: TurnPlace, iteration: number, leave: () => void, early?: EarlyStart): RunningAttempt => {
    const key = keyOf(turn, iteration)
    const attempt = new RunningAttempt({
      fence: -process,
      early,
      keep,
      run: async (attempt) => {
        try {
          return await abandoned.watch(turn.turnId, run(turn, iteration, attempt))
        } finally {
          leave()
        }
      },
      raise: (fences) => raise(turn, iteration, fences),
      onOver: () => attempts.delete(key),
    })
    attempts.set(key, attempt)
    return attempt
  }
  const addEarly = (turn: TurnPlace, iteration: number, leave: () => void, holdsStep: boolean): EarlyAttempt => {
    const early = new EarlyStart(holdsStep)
    const attempt = add(turn, iteration, leave, early)
    return {
      claimed: early.whenClaimed,
      heard: early.whenHeard,
      acknowledge: () => attempt.acknowledge(),
      goneOn: early.goneOn,
      over: early.over,
    }
  }
  const handOver = async (attempt: RunningAttempt, owner: string, signal: AbortSignal): Promise<Begun> => {
    const isBusy = admission.heldBy(owner) > BUSY && attempts.size > CROWDED
    const ms = isBusy ? Math.min(BUSY_HAND_OVER_MS, handOverMs) : handOverMs
    // Temporal has less to do with the turn from here on, unless an activity is to come at once.
    if (!isBusy) attempt.early?.goOn()
    const reasoned = await attempt.handOver(ms, signal)
    if (reasoned === 'rejected') return { outcome: 'unfinished' }
    if (reasoned === 'late' && isClosed()) {
      attempt.stop('the worker stops')
      return { outcome: 'unfinished' }
    }
    if (reasoned === 'late' || reasoned.outcome === 'failed' || reasoned.outcome === 'retry') {
      attempt.expectActivity()
      return { outcome: 'unfinished', process }
    }
    attempt.forget()
    return reasoned.outcome === 'claimed_elsewhere' ? { ...reasoned, outcome: 'unfinished' } : reasoned
  }

  return {
    process,
    reserve: (owner) => {
      const release = mayBeginEarly() ? admission.takeNew(owner) : undefined
      return release && { fence: -process, release }
    },
    beginEarly: (turn, { owner, holdsStep = false }) => {
      if (isClosed() || !(holdsStep || mayBeginEarly()) || attempts.has(keyOf(turn, 1))) return undefined
      // The place that was reserved is released once the attempt has its own.
      const leave = holdsStep ? admission.takeAnyway(owner) : admission.takeNew(owner)
      return leave && addEarly(turn, 1, leave, holdsStep)
    },
    reserveWaiting: admission.takeWaiting,
    letWait: admission.letWait,
    beginWaiting: (turn, iteration, owner) => {
      if (isClosed() || attempts.has(keyOf(turn, iteration))) return undefined
      return addEarly(turn, iteration, admission.takeAnyway(owner), false)
    },
    begin: async (turn, iteration, owner, signal) => {
      const running = attempts.get(keyOf(turn, iteration))
      if (running !== undefined) return handOver(running, owner, signal)
      if (isClosed()) return { outcome: 'unfinished' }
      const leave = admission.takeNew(owner)
      return leave === undefined ? { outcome: 'full' } : handOver(add(turn, iteration, leave), owner, signal)
    },
    adopt: async (turn, iteration, by) => attempts.get(keyOf(turn, iteration))?.lead(by),
    setPolling: admission.setPolling,
    reportStart: admission.reportStart,
    occupy: admission.take,
    isUnattended: (turnId) => [...attempts].some(([key, attempt]) => key.startsWith(turnId) && attempt.isUnattended()),
    unattended: () =>
      [...attempts].filter(([, attempt]) => attempt.takeLost()).map(([key]) => key.slice(0, key.indexOf('/'))),
    abandoned,
    isClosed,
    close: () => {
      admission.close()
      for (const attempt of attempts.values()) if (!attempt.hasWaiters()) attempt.stop('the worker stops')
    },
  }
}

const keyOf = ({ turnId }: TurnPlace, iteration: number) => `${turnId}/${iteration}`
