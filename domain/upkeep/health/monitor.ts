import type { DurableSnapshot } from '../../../contract/durable.ts'
import { sleep } from '../../../lib/sleep.ts'
import { judgeHealth, type ServiceHealth } from './health.ts'

/** Monitor of Temporal, shared by all monitoring streams of a process. It polls only while it has a stream. */
export type Monitor = {
  /** Yields the current snapshot, then the latest one whenever its health has changed. Ends when the signal aborts. */
  follow(signal: AbortSignal): AsyncGenerator<DurableSnapshot, 'aborted'>
}

type HealthReader = () => Promise<ServiceHealth>
type Latest = { snapshot: DurableSnapshot; health: string; at: number }

const POLL_MS = 2000

export function createMonitor(read: HealthReader, pollMs = POLL_MS): Monitor {
  const poll = createPoll(read, pollMs)
  return {
    follow: async function* (signal) {
      let sent: string | undefined
      poll.enter()
      try {
        while (!signal.aborted) {
          const latest = poll.latest()
          if (latest === undefined || latest.health === sent) {
            await poll.next(signal)
            continue
          }
          sent = latest.health
          yield latest.snapshot
        }
        return 'aborted'
      } finally {
        poll.leave()
      }
    },
  }
}

/** Polls while there are followers. */
function createPoll(read: HealthReader, pollMs: number) {
  const waiting = new Set<() => void>()
  let followers = 0
  let latest: Latest | undefined
  let reading: Promise<Latest> | undefined
  let polling = new AbortController()

  /** Runs one read at a time, even if the last stream leaves and another comes meanwhile. */
  const readOnce = () => {
    reading ??= readLatest(read).finally(() => {
      reading = undefined
    })
    return reading
  }
  const poll = async (signal: AbortSignal) => {
    // Streams may come and go quickly, so the latest snapshot counts as current for one interval.
    if (latest !== undefined) await sleep(latest.at + pollMs - performance.now(), signal)
    while (!signal.aborted) {
      const next = await readOnce()
      if (signal.aborted) return
      latest = next
      for (const wake of waiting) wake()
      await sleep(pollMs, signal)
    }
  }
  return {
    latest: (): Latest | undefined => latest,
    next: (signal: AbortSignal): Promise<void> => nextSnapshot(waiting, signal),
    enter(): void {
      if (followers++ > 0) return
      if (latest !== undefined && performance.now() - latest.at >= pollMs) latest = undefined
      polling = new AbortController()
      void poll(polling.signal)
    },
    leave(): void {
      if (--followers === 0) polling.abort()
    },
  }
}

async function readLatest(read: HealthReader): Promise<Latest> {
  const ts = new Date().toISOString()
  const health = judgeHealth(await read())
  return { snapshot: { ts, health }, health: JSON.stringify(health), at: performance.now() }
}

const nextSnapshot = (waiting: Set<() => void>, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      waiting.delete(done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    waiting.add(done)
    signal.addEventListener('abort', done)
  })
