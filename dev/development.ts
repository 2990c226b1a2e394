import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { isPortFree, type RunningServices, type ServicePorts, startServices, stopLeftovers } from './services/index.ts'
import { findRecordedProcess, stopRecordedProcess, writePidFile } from './services/pid-file.ts'
import { print } from './terminal.ts'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))
export const DATA_FOLDER = path.join(ROOT, '.data', 'dev')
export const APP_PID_FILE = path.join(DATA_FOLDER, 'app.pid')

const LAUNCHER_PID_FILE = path.join(DATA_FOLDER, 'launcher.pid')

type Port = {
  variable: string
  purpose: string
  port: number
  /** The address variable that makes this port unnecessary. */
  unlessGiven?: string
}

function readPort(variable: string, fallback: number): number {
  const text = process.env[variable]
  if (!text) return fallback
  const port = Number(text)
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port
  throw new Error(`${variable} must be a port number from 1 to 65535; it is "${text}".`)
}

export function readApiPort(): number {
  return readPort('PORT', 9300)
}

/** Reads the port of the OpenID provider that `npm run start:full` starts. */
export function readIdentityProviderPort(): number {
  return readPort('IDENTITY_PROVIDER_PORT', 9305)
}

export function readServicePorts(): ServicePorts {
  return {
    postgres: readPort('POSTGRES_PORT', 9301),
    redis: readPort('REDIS_PORT', 9302),
    temporal: readPort('TEMPORAL_PORT', 9303),
    temporalUi: readPort('TEMPORAL_UI_PORT', 9304),
  }
}

export function listServicePorts(ports: ServicePorts): Port[] {
  return [
    { variable: 'POSTGRES_PORT', purpose: 'Postgres', port: ports.postgres, unlessGiven: 'DATABASE_URL' },
    { variable: 'REDIS_PORT', purpose: 'Redis', port: ports.redis, unlessGiven: 'REDIS_URL' },
    { variable: 'TEMPORAL_PORT', purpose: 'Temporal', port: ports.temporal, unlessGiven: 'TEMPORAL_ADDRESS' },
    { variable: 'TEMPORAL_UI_PORT', purpose: "Temporal's UI", port: ports.temporalUi, unlessGiven: 'TEMPORAL_ADDRESS' },
  ]
}

export async function checkPorts(ports: Port[]): Promise<void> {
  for (const { variable, purpose, port, unlessGiven } of ports) {
    if (unlessGiven !== undefined && process.env[unlessGiven]) continue
    if (await isPortFree(port)) continue
    throw new Error(`Port ${port} (${purpose}) is in use. Stop what uses it, or set ${variable} to another port.`)
  }
}

/**
 * Claims the development data for this launcher; a second one would stop the services of the first. Throws when another
 * launcher has claimed it.
 */
export async function claimDataFolder(): Promise<{ release(): Promise<void> }> {
  await mkdir(DATA_FOLDER, { recursive: true })
  const owner = await findRecordedProcess(LAUNCHER_PID_FILE, 'scripts/')
  if (owner !== undefined) {
    throw new Error(`The services already run here, under process ${owner}. Stop it first (Ctrl-C, or kill ${owner}).`)
  }
  await rm(LAUNCHER_PID_FILE, { force: true })
  // "wx" fails for the slower of two launchers that start at the same moment.
  await writeFile(LAUNCHER_PID_FILE, '', { flag: 'wx' })
  await writePidFile(LAUNCHER_PID_FILE, process.pid)
  const release = async () => {
    const recorded = await readFile(LAUNCHER_PID_FILE, 'utf8').catch(() => '')
    if (recorded.startsWith(`${process.pid}\n`)) await rm(LAUNCHER_PID_FILE, { force: true })
  }
  return { release }
}

export async function stopEarlierRun(): Promise<void> {
  await stopRecordedProcess(APP_PID_FILE, 'main.ts', 'SIGTERM')
  await stopLeftovers(DATA_FOLDER)
}

export function startDevelopmentServices(
  ports: ServicePorts,
  onServiceDied: (sentence: string) => void,
): Promise<RunningServices> {
  return startServices({ dataDir: DATA_FOLDER, ports, env: process.env, log: print, onServiceDied })
}

/** Returns the environment variables by which the service and its tools find the started services. */
export function serviceEnvironment(services: RunningServices): Record<string, string> {
  return {
    DATABASE_URL: services.databaseUrl,
    REDIS_URL: services.redisUrl,
    TEMPORAL_ADDRESS: services.temporalAddress,
    ...(services.temporalUiUrl === undefined ? {} : { TEMPORAL_UI_URL: services.temporalUiUrl }),
  }
}
