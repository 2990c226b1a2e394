import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { Connection } from '@temporalio/client'
import { parse } from 'yaml'
import { type Service, type ServiceOptions, startProcess } from './process.ts'
import { findTemporal } from './temporal-executable.ts'

export type TemporalService = Service & {
  uiUrl: string
}

const PROBE_TIMEOUT_MS = 3000

/** Settings that a Temporal server needs in production, too. */
const DEPLOYED = new URL('../../deploy/temporal.yaml', import.meta.url)

/**
 * Settings of the development server. By default, its limit of 20 reads a second from each queue adds steps of 50 ms to every
 * state transition, and what it reports of a task queue is up to 5 s old.
 */
const DYNAMIC_CONFIG = [
  'history.transferProcessorMaxPollRPS=2000',
  'history.timerProcessorMaxPollRPS=500',
  'history.visibilityProcessorMaxPollRPS=500',
  'matching.TaskQueueInfoByBuildIdTTL="500ms"',
]

/** The attributes of platform/temporal/search-attributes.ts, so that the first workflows have them. */
const SEARCH_ATTRIBUTES = ['SessionId', 'AgentId', 'OrganizationId', 'ScheduleId']

/** Settings of SQLite, whose default file mode halves the throughput. */
const SQLITE_PRAGMAS = ['journal_mode=WAL', 'synchronous=NORMAL']

type TemporalOptions = ServiceOptions & {
  uiPort: number
  /** Additional settings of the server, each as name=value. */
  dynamicConfig?: string[]
}

async function temporalArguments(options: TemporalOptions): Promise<string[]> {
  const { dataDir, port, uiPort, dynamicConfig = [] } = options
  const config = [...(await deployedConfig()), ...DYNAMIC_CONFIG, ...dynamicConfig]
  const place = ['--ip', '127.0.0.1', '--port', String(port), '--ui-port', String(uiPort)]
  return [
    ...['server', 'start-dev', ...place, '--log-level', 'warn'],
    ...['--db-filename', path.join(dataDir, 'temporal.db')],
    ...config.flatMap((value) => ['--dynamic-config-value', value]),
    ...SQLITE_PRAGMAS.flatMap((value) => ['--sqlite-pragma', value]),
    ...SEARCH_ATTRIBUTES.flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
  ]
}

async function deployedConfig(): Promise<string[]> {
  const settings: Record<string, [{ value: unknown }]> = parse(await readFile(DEPLOYED, 'utf8'))
  return Object.entries(settings).map(([name, [{ value }]]) => `${name}=${JSON.stringify(value)}`)
}

async function probeTemporal(address: string): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: PROBE_TIMEOUT_MS })
  try {
    const deadline = Date.now() + PROBE_TIMEOUT_MS
    await connection.withDeadline(deadline, () =>
      connection.workflowService.describeNamespace({ namespace: 'default' }),
    )
  } finally {
    await connection.close()
  }
}

/** Starts Temporal's development server and its web interface on the loopback interface. */
export async function startTemporal(options: TemporalOptions): Promise<TemporalService> {
  const { dataDir, port, uiPort, log } = options
  const address = `127.0.0.1:${port}`
  const service = await startProcess({
    name: 'temporal',
    command: await findTemporal(log),
    args: await temporalArguments(options),
    dataDir,
    url: address,
    stopSignal: 'SIGTERM',
    log,
    probe: () => probeTemporal(address),
  })
  return { ...service, uiUrl: `http://127.0.0.1:${uiPort}` }
}
