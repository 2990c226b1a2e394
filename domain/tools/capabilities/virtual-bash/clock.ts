/**
 * Simulated time of scripts. A `sleep` advances it at once, and due timers fire. A sleeping script does not occupy its
 * process: its result waits outside for the skipped time.
 */

type Timer = { dueAt: number; fire(): void; real?: NodeJS.Timeout; unref(): Timer; ref(): Timer; hasRef(): boolean }

const real = { setTimeout, clearTimeout, setImmediate, now: Date.now }
const timers = new Set<Timer>()
let passedOverMs = 0

const now = (): number => real.now() + passedOverMs

/** Replaces the clock and the timers of this process. They follow real time until something sleeps. */
export function installClock(): void {
  const construct = (target: DateConstructor, args: unknown[], newTarget: unknown) =>
    // The arguments of Date.
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget as DateConstructor)
  const get = (target: DateConstructor, key: string | symbol) => (key === 'now' ? now : Reflect.get(target, key))
  const timeouts = { setTimeout: addTimer, clearTimeout: removeTimer }
  Object.assign(globalThis, timeouts, { Date: new Proxy(Date, { construct, get }) })
}

/** Starts the clock of a script, `earlierMs` before the real time. */
export function startClock(earlierMs: number): void {
  for (const timer of timers) removeTimer(timer)
  passedOverMs = -earlierMs
}

/** Returns how far the script's clock is ahead of real time, in ms. */
export const passedOver = (): number => passedOverMs

/** Skips a time. Ends early when a timer aborts the signal, such as the timer of `timeout`. */
export async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const until = now() + ms
  // Lets other concurrent sleeps begin.
  await immediate()
  while (!signal?.aborted) {
    const next = [...timers].filter(({ dueAt }) => dueAt <= until).sort((one, other) => one.dueAt - other.dueAt)[0]
    passOverUntil(next?.dueAt ?? until)
    if (next === undefined) return
    removeTimer(next)
    next.fire()
    await immediate()
  }
}

const immediate = (): Promise<void> => new Promise((resolve) => real.setImmediate(resolve))

function passOverUntil(at: number): void {
  passedOverMs += Math.max(0, at - now())
  for (const timer of timers) arm(timer)
}

function addTimer(callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]): Timer {
  const timer: Timer = {
    dueAt: now() + Math.max(1, Number(ms) || 1),
    fire: () => callback(...args),
    unref: () => timer,
    ref: () => timer,
    hasRef: () => true,
  }
  timers.add(timer)
  arm(timer)
  return timer
}

function arm(timer: Timer): void {
  real.clearTimeout(timer.real)
  timer.real = real.setTimeout(
    () => {
      timers.delete(timer)
      timer.fire()
    },
    Math.max(1, timer.dueAt - now()),
  )
}

function removeTimer(timer: Timer | undefined): void {
  if (timer === undefined || !timers.delete(timer)) return
  real.clearTimeout(timer.real)
}
