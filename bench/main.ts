import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePorts, startServices } from '../dev/services/index.ts'
import { benchAppend } from './append.ts'
import { benchAttacks } from './attacks.ts'
import { benchAuth } from './auth.ts'
import { benchConsole } from './console.ts'
import { benchDatabases } from './databases.ts'
import { benchFairness } from './fairness.ts'
import { benchFiles } from './files.ts'
import { benchGrep } from './files-grep.ts'
import { benchGrowth } from './growth.ts'
import { benchHostile } from './hostile.ts'
import { benchImages } from './images.ts'
import { benchLists } from './lists.ts'
import { benchMany } from './many.ts'
import { benchSchedules } from './schedules.ts'
import { benchSse } from './sse.ts'
import { benchApart, benchTurns } from './turns.ts'

/**
 * `npm run bench [-- turns | apart | growth | sse | lists | auth | append | hostile | images | files |
 * databases | schedules | console | many | fairness | attacks]`: starts its own services and the service, measures, prints, and
 * cleans up.
 */
const [subject = 'turns', ...args] = process.argv.slice(2)
const dataDir = await mkdtemp(path.join(tmpdir(), 'agent-sessions-bench-'))
const [postgres = 0, redis = 0, temporal = 0, temporalUi = 0, port = 0, otherPort = 0] = await freePorts(6)
const services = await startServices({
  dataDir,
  ports: { postgres, redis, temporal, temporalUi },
  env: process.env,
  log: () => {},
})
try {
  process.exitCode = (await measure()) ? 0 : 1
} finally {
  await services.stop()
  await rm(dataDir, { recursive: true, force: true })
}

async function measure(): Promise<boolean> {
  if (subject === 'sse') return benchSse(services, port)
  if (subject === 'append') return benchAppend(services)
  if (subject === 'auth') return benchAuth(services, [port, otherPort])
  if (subject === 'hostile') return benchHostile(services, port)
  if (subject === 'console') return benchConsole(services, [port, otherPort])
  if (subject === 'databases') return benchDatabases(services)
  if (subject === 'schedules') return benchSchedules(services, port)
  if (subject === 'images') return benchImages(services, port)
  if (subject === 'files')
    return [await benchFiles(services, port), await benchGrep(services, otherPort)].every(Boolean)
  if (subject === 'many') return benchMany({ services, dataDir }, args)
  if (subject === 'fairness') return benchFairness(services, port, args)
  if (subject === 'attacks') return benchAttacks(services, port, args)
  if (subject === 'lists') return benchLists(services, [port, otherPort])
  if (subject === 'growth') return benchGrowth({ services, dataDir })
  if (subject === 'apart') return benchApart({ services, dataDir })
  return benchTurns({ services, dataDir })
}
