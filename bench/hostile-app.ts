import { apiRole } from '../api/main.ts'
import { readConfig } from '../platform/config.ts'
import { createLog } from '../platform/log.ts'
import { buildPlatform } from '../platform/wiring/build.ts'
import { workerRole } from '../worker/main.ts'
import { serveParent } from './child.ts'

const EVERY_MS = 5

/**
 * The service as `npm start` runs it, both roles in one process. Answers each message with the longest time for which
 * its event loop was busy since the last one, in ms of the thread's own CPU, so that other processes do not count.
 */
const config = readConfig()
const log = createLog('error', 'bench')
const platform = await buildPlatform(config, log)
const worker = await workerRole(platform, config, log)
const api = await apiRole(platform, config, log)

let longestMs = 0
let last = process.threadCpuUsage()
const look = (): void => {
  const { user, system } = process.threadCpuUsage(last)
  longestMs = Math.max(longestMs, (user + system) / 1000)
  last = process.threadCpuUsage()
}
const timer = setInterval(look, EVERY_MS)

serveParent(
  'ready',
  async () => {
    const answer = longestMs
    longestMs = 0
    return answer
  },
  async () => {
    clearInterval(timer)
    await api.stop()
    await worker.stop()
    await platform.close()
  },
)
