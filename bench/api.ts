import type { RunningServices } from '../dev/services/index.ts'
import { type Child, startChild } from './child.ts'

/** Delay of an event loop, in ms. */
export type Loop = { p50: number; p99: number; worst: number }

/** Starts an API process, which answers each message with the delay of its event loop since the last one. */
export const startApi = (
  { databaseUrl, redisUrl, temporalAddress }: RunningServices,
  port: number,
  env: Record<string, string> = {},
): Promise<Child> =>
  startChild('./api-process.ts', {
    env: {
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      TEMPORAL_ADDRESS: temporalAddress,
      PORT: `${port}`,
      ...env,
    },
  })

export const shown = ({ p50, p99, worst }: Loop): string =>
  `delay p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)}, worst ${worst.toFixed(1)} ms`

/** Returns the seconds that the work takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return (performance.now() - startedAt) / 1000
}
