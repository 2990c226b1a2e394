import { monitorEventLoopDelay } from 'node:perf_hooks'
import { apiRole } from '../api/main.ts'
import { readConfig } from '../platform/config.ts'
import { createLog } from '../platform/log.ts'
import { buildPlatform } from '../platform/wiring/build.ts'
import { serveParent } from './child.ts'

/** The API as its own process. Answers each message with the delay of its event loop since the last one, in ms. */
const config = readConfig()
const log = createLog('error', 'bench')
const platform = await buildPlatform(config, log)
const api = await apiRole(platform, config, log)

const RESOLUTION_MS = 5
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
delay.enable()
/** The histogram counts from one timer to the next, so the time between them is taken off. */
const toMs = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)

serveParent(
  'ready',
  async () => {
    const answer = { p50: toMs(delay.percentile(50)), p99: toMs(delay.percentile(99)), worst: toMs(delay.max) }
    delay.reset()
    return answer
  },
  async () => {
    delay.disable()
    await api.stop()
    await platform.close()
  },
)
