import type { NativeConnection } from '@temporalio/worker'
import type { Deps } from '../domain/deps.ts'
import { LEASE_MS, releaseLease } from '../domain/turns/run/process-lease.ts'
import { releaseDeadProcesses } from '../domain/turns/sweep/lost-activities.ts'
import { sleep } from '../lib/sleep.ts'
import { warnRarely } from '../lib/warn-rarely.ts'
import { LEASE_LIMIT_MS, type LeaseConnection } from './lease-connection.ts'

const RENEW_MS = 500
/** Time without Postgres after which a process takes nothing more. */
const LOST_MS = 2000
const PROBE_MS = 500
const PROBE_TIMEOUT_MS = 2000
/** Time after which an answer of Temporal tells of a connection that was away: the library asks again by itself. */
const SILENT_MS = 500
/** Time without Temporal after which a process gives up its steps: others reach it, or nobody can take them anyway. */
const MAX_AWAY_MS = 10_000

/** The lease of this process. Attempts begin without an activity only while it is held and a worker polls. */
export type Lease = {
  /**
   * Says that a worker polls, on a connection that works, until the signal aborts. Resolves then, or as soon as the lease is about to
   * be lost: Postgres cannot be reached, so others will take the steps.
   */
  poll(connection: NativeConnection, signal: AbortSignal): Promise<'left' | 'lost'>
  /** Resolves when it has been released. */
  released: Promise<void>
}

/**
 * Holds the lease of this process until the signal aborts, also between two shifts of its workers. A process that is cut
 * off from Temporal does not hold it for long: it cannot end its steps. `onSilence` is called when Temporal has not answered at once.
 */
export function holdLease(deps: Deps, record: LeaseConnection, onSilence: () => void, signal: AbortSignal): Lease {
  /** Time of Temporal's last answer. Before the first one there is no lease. */
  let answeredAt = Number.NEGATIVE_INFINITY
  /** Begin of the time without Postgres. */
  let awaySince: number | undefined
  let failures = 0
  let lose: (() => void) | undefined
  let runsOut: NodeJS.Timeout | undefined
  let isHeld = false
  let pause = new AbortController()
  const letRunOut = () => {
    clearTimeout(runsOut)
    deps.attempts.setPolling(false)
    isHeld = false
  }
  const renew = async () => {
    await record.renew()
    clearTimeout(runsOut)
    runsOut = setTimeout(letRunOut, LEASE_MS).unref()
    // A process that takes the place of a killed one goes on with its turns at once.
    if (!isHeld) void releaseDeadProcesses(deps).catch(warn(deps, 'no dead process taken over; the sweep will'))
    isHeld = true
    if (lose !== undefined) deps.attempts.setPolling(true)
    // Nobody has asked Temporal meanwhile, unless workers polled.
    if (awaySince !== undefined && lose === undefined) answeredAt += performance.now() - awaySince
    awaySince = undefined
    failures = 0
  }
  const hold = async () => {
    signal.addEventListener('abort', () => pause.abort(), { once: true })
    while (!signal.aborted) {
      const triedAt = performance.now()
      try {
        if (awaySince !== undefined || triedAt - answeredAt < MAX_AWAY_MS) await renew()
      } catch (error) {
        warn(deps, 'the lease of this process was not renewed')(error as Error)
        // A limit that ends late tells of a busy event loop, not of Postgres.
        const isBusy = performance.now() - triedAt > LEASE_LIMIT_MS + RENEW_MS
        if (!isBusy) {
          awaySince ??= triedAt
          failures++
        }
        // One failure may be the connection's own.
        if (failures > 1 && performance.now() - (awaySince ?? triedAt) > LOST_MS) lose?.()
      }
      pause = new AbortController()
      if (!signal.aborted) await sleep(RENEW_MS, pause.signal)
    }
    letRunOut()
    await releaseLease(deps).catch(warn(deps, 'the lease of this process was not released'))
  }
  const poll = (connection: NativeConnection, leaving: AbortSignal) =>
    new Promise<'left' | 'lost'>((resolve) => {
      const end = (how: 'left' | 'lost') => {
        if (lose === endAsLost) lose = undefined
        deps.attempts.setPolling(false)
        resolve(how)
      }
      const endAsLost = () => end('lost')
      lose = endAsLost
      failures = 0
      answeredAt = performance.now()
      if (isHeld) deps.attempts.setPolling(true)
      else pause.abort()
      leaving.addEventListener('abort', () => end('left'), { once: true })
      if (leaving.aborted) end('left')
      void watchTemporal(connection, leaving, onSilence, () => {
        answeredAt = performance.now()
      })
    })
  return { poll, released: hold() }
}

/** Pings Temporal again and again. A call may outlast its own limit while there is no connection. */
async function watchTemporal(
  connection: NativeConnection,
  signal: AbortSignal,
  onSilence: () => void,
  onAnswer: () => void,
): Promise<void> {
  const ask = () =>
    connection
      .withDeadline(Date.now() + PROBE_TIMEOUT_MS, () => connection.workflowService.getSystemInfo({}))
      .then(onAnswer, () => {})
  while (!signal.aborted) {
    const askedAt = performance.now()
    await Promise.race([ask(), sleep(PROBE_TIMEOUT_MS, signal)])
    if (performance.now() - askedAt > SILENT_MS) onSilence()
    await sleep(PROBE_MS, signal)
  }
}

const warn =
  ({ log }: Deps, what: string) =>
  (error: Error): void =>
    warnRarely(log, { err: error.message }, what)
