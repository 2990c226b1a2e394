import { rejectOnAbort } from '../../../lib/reject-on-abort.ts'
import { sleep } from '../../../lib/sleep.ts'
import type { PlannedTool, TurnErrorCode, TurnReport } from '../../../workflows/messages.ts'
import type { EarlyStart } from './early-start.ts'

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
  readonly signal: AbortSignal
  /** True for an activity that leaves the step to the living process in which it has begun without one. */
  readonly mayHandOver?: boolean
  /** Set for an attempt that begins before Temporal knows of the turn. */
  readonly early?: Pick<EarlyStart, 'holdsStep' | 'claimed' | 'heard' | 'isKnown' | 'known'> | undefined
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
  /** As many turns run as may; this one waits for a place among them. */
  | { outcome: 'waits' }
  /** The step is another attempt's. `process` is set if a living process has begun it. */
  | { outcome: 'claimed_elsewhere'; process?: number }

/** Times for which an attempt is kept while nobody waits for it. */
export type KeepTimes = {
  /** While its outcome is in no record: Temporal may be away. */
  unattendedMs: number
  /** When the record has its outcome. This saves a query, and holds the place of another attempt. */
  recordedMs: number
}

type Options = {
  fence: number
  early: EarlyStart | undefined
  keep: KeepTimes
  run: (attempt: Attempt) => Promise<Reasoned>
  /** Raises the fence in the record; false when another attempt has taken the step. */
  raise: (fences: { from: number; to: number }) => Promise<boolean>
  /** Called once, when the attempt is over. */
  onOver: () => void
}

/** Time in which an attempt's activity comes. Later, it may be lost. */
const ADOPT_LIMIT_MS = 4000
/** Time after which a lost activity is looked for again. */
const LOST_RECHECK_MS = 10_000

/**
 * Attempt at a reason step that runs in this process. States: `running` until it has an outcome; then `recorded` if the
 * record has that too, else `failed`; `over` when nobody can join it any more. An attempt that nobody waits for is over
 * after a time that depends on its state.
 */
export class RunningAttempt implements Attempt {
  fence: number
  raising: Promise<boolean> | undefined
  readonly early: EarlyStart | undefined
  readonly signal: AbortSignal
  readonly outcome: Promise<Reasoned>
  readonly #options: Options
  readonly #abort = new AbortController()
  #state: 'running' | 'recorded' | 'failed' | 'over' = 'running'
  /** Number of waiters for the outcome. */
  #waiters = 0
  /** The activity that leads the attempt. Its cancellation is the attempt's. */
  #leader: Attempt | undefined
  /** Runs while nobody waits. */
  #unattended: NodeJS.Timeout | undefined
  /** Time at which the expected activity counts as lost. */
  #lostAt: number | undefined

  constructor(options: Options) {
    this.#options = options
    this.fence = options.fence
    this.early = options.early
    this.signal = this.#abort.signal
    this.outcome = Promise.resolve().then(() => options.run(this))
    this.outcome.then(
      ({ outcome }) => {
        // The next attempt may find a place.
        if (outcome === 'waits') this.forget()
        else this.#settle(outcome === 'failed' || outcome === 'retry' ? 'failed' : 'recorded')
      },
      () => this.forget(),
    )
    const end = () => this.early?.end()
    this.outcome.then(end, end)
  }

  /** Reports that Temporal has the turn's workflow, which each waiter proves. */
  acknowledge(): void {
    if (this.early === undefined) return
    this.early.acknowledge()
    this.#keepOrStop()
  }

  /** Waits a moment for the outcome. Rejects only when the signal aborts. */
  handOver(ms: number, signal: AbortSignal): Promise<Reasoned | 'rejected' | 'late'> {
    this.acknowledge()
    return this.#attend(() => settledWithin(this.outcome, ms, signal))
  }

  /** Leads the attempt to its end as an activity. Undefined when another attempt has taken the step. */
  lead(by: Attempt): Promise<Reasoned | undefined> {
    this.acknowledge()
    this.early?.goOn()
    this.#lostAt = undefined
    this.#leader = by
    const cancel = () => {
      // Temporal may have given up this activity because its process was frozen, and sent another one.
      if (this.#leader === by) this.#abort.abort(by.signal.reason)
    }
    if (by.signal.aborted) cancel()
    by.signal.addEventListener('abort', cancel)
    return this.#attend(async () => {
      try {
        return await this.#outcomeUnder(by.fence)
      } finally {
        by.signal.removeEventListener('abort', cancel)
        this.expectActivity()
      }
    })
  }

  /** Says that an activity is to come for the attempt. */
  expectActivity(): void {
    this.#lostAt = performance.now() + ADOPT_LIMIT_MS
  }

  /** Whether nobody waits and an activity is to come. */
  isUnattended(): boolean {
    return this.#waiters === 0 && this.#lostAt !== undefined
  }

  /** Whether the expected activity has not come. True once in a while only. */
  takeLost(): boolean {
    const now = performance.now()
    if (this.#waiters > 0 || this.#lostAt === undefined || this.#lostAt >= now) return false
    this.#lostAt = now + LOST_RECHECK_MS
    return true
  }

  hasWaiters(): boolean {
    return this.#waiters > 0
  }

  /** Aborts the attempt and ends it. */
  stop(why: string): void {
    this.#abort.abort(new Error(why))
    this.forget()
  }

  /** Ends the attempt: nobody can join it any more. */
  forget(): void {
    clearTimeout(this.#unattended)
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#options.onOver()
  }

  #settle(state: 'recorded' | 'failed'): void {
    if (this.#state === 'running') this.#state = state
    this.#keepOrStop()
  }

  /** Keeps an attempt that nobody waits for, for its time. */
  #keepOrStop(): void {
    clearTimeout(this.#unattended)
    if (this.#waiters > 0 || this.#state === 'over') return
    const { unattendedMs, recordedMs } = this.#options.keep
    // An activity that is to come has to be missed first.
    const keptMs = this.#lostAt === undefined ? recordedMs : Math.max(recordedMs, ADOPT_LIMIT_MS + LOST_RECHECK_MS / 2)
    const ms = this.#state === 'recorded' ? keptMs : unattendedMs
    this.#unattended = setTimeout(() => this.stop('nobody waits for the attempt'), ms).unref()
  }

  async #attend<T>(wait: () => Promise<T>): Promise<T> {
    clearTimeout(this.#unattended)
    this.#waiters++
    try {
      return await wait()
    } finally {
      this.#waiters--
      this.#keepOrStop()
    }
  }

  async #outcomeUnder(fence: number): Promise<Reasoned | undefined> {
    if (!(await this.#raiseTo(fence))) {
      this.stop('another attempt has taken the step')
      return undefined
    }
    const reasoned = await this.outcome
    this.forget()
    return reasoned.outcome === 'claimed_elsewhere' ? undefined : reasoned
  }

  /** Raises the fence, one raise after the other. It stays while the record cannot be reached. */
  #raiseTo(to: number): Promise<boolean> {
    this.raising = (this.raising ?? Promise.resolve(true)).then(async (isOwn) => {
      const { fence: from } = this
      if (!isOwn || to <= from) return isOwn
      try {
        const isRaised = await this.#options.raise({ from, to })
        if (isRaised) this.fence = to
        return isRaised
      } catch {
        return true
      }
    })
    return this.raising
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
