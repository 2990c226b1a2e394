import { setTimeout as sleep } from 'node:timers/promises'
import { countRetryingTurns } from '../../turns/read.ts'
import { countStalledTurns } from '../../turns/runs/stalled.ts'
import type { Deps } from '../deps.ts'
import type { ServiceHealth } from './health.ts'

const COUNT_TIMEOUT_MS = 5000

/** Queries Temporal and the record, each within a few seconds. Never rejects. */
export async function readHealth(deps: Deps): Promise<ServiceHealth> {
  const [temporal, retrying, stalled] = await Promise.all([
    deps.workflows.readHealth(),
    countInTime(deps, countRetryingTurns(deps)),
    countInTime(deps, countStalledTurns(deps)),
  ])
  return { ...temporal, retrying, stalled }
}

async function countInTime(deps: Deps, count: Promise<number>): Promise<number | null> {
  const over = new AbortController()
  try {
    return await Promise.race([count, sleep(COUNT_TIMEOUT_MS, null, { signal: over.signal })])
  } catch (error) {
    deps.log.debug({ err: (error as Error).message }, 'turns not counted')
    return null
  } finally {
    over.abort()
  }
}
