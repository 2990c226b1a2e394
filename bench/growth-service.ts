import { apiRole } from '../api/main.ts'
import { readConfig } from '../platform/config.ts'
import { createLog } from '../platform/log.ts'
import { buildPlatform } from '../platform/wiring/build.ts'
import { workerRole } from '../worker/main.ts'
import { serveParent } from './child.ts'
import { measureMemory } from './memory.ts'

/** Service as `npm start` runs it, API and worker in one process, that answers each message with its memory. */
const config = readConfig()
const log = createLog('warn', 'bench')
const platform = await buildPlatform(config, log)
const roles = [await workerRole(platform, config, log), await apiRole(platform, config, log)]
serveParent('ready', measureMemory, async () => {
  for (const role of roles.toReversed()) await role.stop()
  await platform.close()
})
