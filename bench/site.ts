import { mkdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { RunningServices } from '../dev/services/index.ts'
import { freePorts } from '../dev/services/ports.ts'
import { ROOT, type RunningApp, spawnApp } from './app.ts'
import type { Processes } from './cpu.ts'

/** Services that run, and the folder of their data. */
export type Ground = { services: RunningServices; dataDir: string }

/** The service, running with services of its own. `baseUrls` has the addresses of all processes that serve the API. */
export type Site = { baseUrl: string; baseUrls: string[]; processes: Processes; stop(): Promise<void> }

/** `together`: API and worker in one process, as with `npm start`. `replicas`: two of those. `apart`: one process each. */
export type Shape = 'together' | 'replicas' | 'apart'

/** Makes the provider's model the default one. With a base URL the service speaks Chat Completions. */
export const providerEnvironment = (port: number): Record<string, string> => ({
  DEFAULT_OPENAI_API_KEY: 'sk-bench',
  DEFAULT_OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
})

/** Starts the service of a checkout. Its default model is served by the provider on the given port. */
export async function startSite(
  { services, dataDir }: Ground,
  shape: Shape,
  providerPort: number,
  folder = ROOT,
  settings: Record<string, string> = {},
): Promise<Site> {
  const [port = 0, otherPort = 0] = await freePorts(2)
  const environment = { ...providerEnvironment(providerPort), ...settings }
  const start = (entryPoint: 'main.ts' | 'api/main.ts' | 'worker/main.ts', at = port) =>
    spawnApp(services, at, environment, { folder, entryPoint })
  // The first one migrates the database.
  const apps: Record<string, RunningApp> =
    shape === 'apart'
      ? { api: await start('api/main.ts'), worker: await start('worker/main.ts') }
      : { service: await start('main.ts') }
  if (shape === 'replicas') apps.replica = await start('main.ts', otherPort)
  const ofApps: Processes = Object.fromEntries(Object.entries(apps).map(([role, { pid }]) => [role, [pid]]))
  const baseUrls = (shape === 'replicas' ? [port, otherPort] : [port]).map((at) => `http://127.0.0.1:${at}`)
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    baseUrls,
    processes: { ...ofApps, ...(await readServiceProcesses(dataDir)) },
    stop: async () => {
      await Promise.all(Object.values(apps).map((app) => app.stop()))
    },
  }
}

/** Starts the service of an earlier checkout, BENCH_BEFORE, with services of its own. Undefined without BENCH_BEFORE. */
export async function startSiteBefore(
  parentDir: string,
  shape: Shape,
  providerPort: number,
): Promise<Site | undefined> {
  const given = process.env.BENCH_BEFORE
  return given ? startOwnSite(path.join(parentDir, 'before'), shape, providerPort, path.resolve(given)) : undefined
}

/** Starts the service of a checkout on services that the checkout's own code starts with its own settings. */
export async function startOwnSite(dataDir: string, shape: Shape, providerPort: number, folder = ROOT): Promise<Site> {
  const code = pathToFileURL(path.join(folder, 'dev/services/index.ts')).href
  const { startServices }: typeof import('../dev/services/index.ts') = await import(code)
  const [postgres = 0, redis = 0, temporal = 0, temporalUi = 0] = await freePorts(4)
  await mkdir(dataDir)
  const ports = { postgres, redis, temporal, temporalUi }
  const services = await startServices({ dataDir, ports, env: {}, log: () => {} })
  try {
    const site = await startSite({ services, dataDir }, shape, providerPort, folder)
    const stop = async () => {
      await site.stop()
      await services.stop()
    }
    return { ...site, stop }
  } catch (error) {
    await services.stop()
    throw error
  }
}

/** Returns the processes of the services that were started here; one whose address the environment gives is not. */
export async function readServiceProcesses(dataDir: string): Promise<Processes> {
  const processes: Processes = {}
  for (const name of ['Temporal', 'Postgres', 'Redis']) {
    const file = path.join(dataDir, name.toLowerCase(), `${name.toLowerCase()}.pid`)
    const pid = Number.parseInt(await readFile(file, 'utf8').catch(() => ''), 10)
    if (Number.isInteger(pid)) processes[name] = [pid]
  }
  return processes
}
