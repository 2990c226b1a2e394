import { apiRole } from '../api/main.ts'
import { readConfig } from '../platform/config.ts'
import { createLog } from '../platform/log.ts'
import { buildPlatform } from '../platform/wiring/build.ts'
import { serveParent } from './child.ts'
import { measureMemory } from './memory.ts'

/** API process of the service, as `npm run start:api` runs it, that reports the memory and CPU it takes. */
const config = readConfig()
const log = createLog('warn', 'bench')
const platform = await buildPlatform(config, log)
const api = await apiRole(platform, config, log)
serveParent(
  'ready',
  async (question) => (question === 'memory' ? measureMemory() : process.cpuUsage()),
  async () => {
    await api.stop()
    await platform.close()
  },
)
