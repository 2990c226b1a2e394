import { chmodSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import {
  freePorts,
  type Service,
  startPostgres,
  startRedis,
  startTemporal,
  type TemporalService,
} from '../../dev/services/index.ts'

/** Server for one test, which may stop it. A restart keeps its address and its data. */
export type PrivateService<S> = {
  dataDir: string
  address(): Promise<string>
  start(): Promise<S>
  /** Removes the data. The server must not be running. */
  remove(): Promise<void>
}

const silent = () => {}

/** Postgres that loses nothing when it is killed. */
export const privatePostgres = (): PrivateService<Service> =>
  privateService('postgres', (dataDir, [port = 0]) => startPostgres({ dataDir, port, log: silent, durability: 'full' }))

export const privateRedis = (): PrivateService<Service> =>
  privateService('redis', (dataDir, [port = 0]) => startRedis({ dataDir, port, log: silent }))

export const privateTemporal = (): PrivateService<TemporalService> =>
  privateService('temporal', (dataDir, [port = 0, uiPort = 0]) => startTemporal({ dataDir, port, uiPort, log: silent }))

function privateService<S>(name: string, start: (dataDir: string, ports: number[]) => Promise<S>): PrivateService<S> {
  const dataDir = mkdtempSync(path.join(tmpdir(), `agent-sessions-${name}-`))
  // Postgres does not run as root, so another user looks into the folder.
  chmodSync(dataDir, 0o755)
  const ports = freePorts(2)
  return {
    dataDir,
    address: async () => `127.0.0.1:${(await ports)[0]}`,
    start: async () => start(dataDir, await ports),
    remove: () => rm(dataDir, { recursive: true, force: true }),
  }
}
