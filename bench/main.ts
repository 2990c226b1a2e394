import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePorts, startServices } from '../scripts/services.ts'
import { type RunningApp, spawnApp } from './app.ts'
import { benchSse } from './sse.ts'
import { benchTurns } from './turns.ts'

/** `npm run bench [-- sse]`: brings up its own services and the service, measures, prints, and cleans up. */
const [subject = 'turns'] = process.argv.slice(2)
const dataDir = await mkdtemp(path.join(tmpdir(), 'agent-sessions-bench-'))
const [postgres = 0, redis = 0, temporal = 0, temporalUi = 0, port = 0] = await freePorts(5)
const services = await startServices({
  dataDir,
  ports: { postgres, redis, temporal, temporalUi },
  env: process.env,
  log: () => {},
})
let app: RunningApp | undefined
try {
  if (subject !== 'sse') app = await spawnApp(services, port)
  const met =
    subject === 'sse'
      ? await benchSse(services, port)
      : await benchTurns(`http://127.0.0.1:${port}`, services.temporalAddress)
  process.exitCode = met ? 0 : 1
} finally {
  await app?.stop()
  await services.stop()
  await rm(dataDir, { recursive: true, force: true })
}
