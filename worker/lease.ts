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
const PROBE_MS = 1000
const PROBE_TIMEOUT_MS = 2000
/** Time without Temporal after which a process gives up its steps: others reach it, or nobody can take them anyway. */
const MAX_AWAY_MS = 10_000

/**
 * Holds the lease of this process until the signal aborts, unless the process is cut off from Temporal: then it cannot
 * end its steps. Attempts begin without an activity only while the lease is held. Resolves when it has been released, or
 * is about to be lost: Postgres cannot be reached, so others will take the steps.
 */
export async function holdLease(
  deps: Deps,
  lease: LeaseConnection,
  connection: NativeConnection,
  signal: AbortSignal,
): Promise<'released' | 'lost'> {
  const temporal = watchTemporal(connection, signal)
  let runsOut: NodeJS.Timeout | undefined
  let isHeld = false
  let failures = 0
  let failingSince = 0
  while (!signal.aborted) {
    const triedAt = performance.now()
    try {
      if (temporal.awayMs() < MAX_AWAY_MS) {
        await lease.renew()
        failures = 0
        clearTimeout(runsOut)
        runsOut = setTimeout(() => deps.attempts.setPolling(false), LEASE_MS).unref()
        if (!signal.aborted) deps.attempts.setPolling(true)
        // A process that takes the place of a killed one goes on with its turns at once.
        if (!isHeld) void releaseDeadProcesses(deps).catch(warn(deps, 'no dead process taken over; the sweep will'))
        isHeld = true
      }
    } catch (error) {
      warn(deps, 'the lease of this process was not renewed')(error as Error)
      // A limit that ends late tells of a busy event loop, not of Postgres.
      const isBusy = performance.now() - triedAt > LEASE_LIMIT_MS + RENEW_MS
      if (!isBusy && failures++ === 0) failingSince = triedAt
      // One failure may be the connection's own.
      if (failures > 1 && performance.now() - failingSince > LOST_MS) {
        clearTimeout(runsOut)
        return 'lost'
      }
    }
    await sleep(RENEW_MS, signal)
  }
  clearTimeout(runsOut)
  await releaseLease(deps).catch(warn(deps, 'the lease of this process was not released'))
  return 'released'
}

/** Pings Temporal again and again. A call may outlast its own limit while there is no connection. */
function watchTemporal(connection: NativeConnection, signal: AbortSignal): { awayMs(): number } {
  let answeredAt = performance.now()
  const ask = () =>
    connection
      .withDeadline(Date.now() + PROBE_TIMEOUT_MS, () => connection.workflowService.getSystemInfo({}))
      .then(() => {
        answeredAt = performance.now()
      })
      .catch(() => {})
  const watch = async () => {
    while (!signal.aborted) {
      await Promise.race([ask(), sleep(PROBE_TIMEOUT_MS, signal)])
      await sleep(PROBE_MS, signal)
    }
  }
  void watch()
  return { awayMs: () => performance.now() - answeredAt }
}

const warn =
  ({ log }: Deps, what: string) =>
  (error: Error): void =>
    warnRarely(log, { err: error.message }, what)
