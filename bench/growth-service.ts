import { apiRole } from '../api/main.ts'
import { readConfig } from '../platform/config.ts'
import { createLog } from '../platform/log.ts'
import { buildPlatform } from '../platform/wiring/build.ts'
import type { Role } from '../platform/wiring/run.ts'
import { workerRole } from '../worker/main.ts'
import { serveParent } from './child.ts'
import { measureMemory } from './memory.ts'

/**
 * Service as `npm start` runs it, API and worker in one process, that answers each message with its memory. The argument
 * `api` or `worker` makes it only that.
 */
const [only] = process.argv.slice(2)
const config = readConfig()
const log = createLog(config.LOG_LEVEL, 'bench')
const platform = await buildPlatform(config, log)
const wanted = { worker: [workerRole], api: [apiRole] }[only ?? ''] ?? [workerRole, apiRole]
const roles: Awaited<ReturnType<Role>>[] = []
for (const role of wanted) roles.push(await role(platform, config, log))
serveParent('ready', measureMemory, async () => {
  for (const role of roles.toReversed()) await role.stop()
  await platform.close()
})
