import path from 'node:path'
import { Connection } from '@temporalio/client'
import { freePorts } from '../dev/services/ports.ts'
import { type Service, startProcess } from '../dev/services/process.ts'
import { findTemporal } from '../dev/services/temporal-executable.ts'

/** Settings of dev/services/temporal.ts as they were at commit 0a5f2b6. They stay as they are. */
const DYNAMIC_CONFIG = [
  'history.transferProcessorMaxPollRPS=2000',
  'history.timerProcessorMaxPollRPS=500',
  'history.visibilityProcessorMaxPollRPS=500',
  'matching.TaskQueueInfoByBuildIdTTL="500ms"',
]
const SQLITE_PRAGMAS = ['journal_mode=WAL', 'synchronous=NORMAL']
const PROBE_TIMEOUT_MS = 3000

/** Starts a development server of Temporal with the settings that it had before eager execution of activities. */
export async function startTemporalBefore(parentDir: string): Promise<Service> {
  const [port = 0, uiPort = 0] = await freePorts(2)
  const address = `127.0.0.1:${port}`
  const dataDir = path.join(parentDir, 'temporal-before')
  const log = () => {}
  return startProcess({
    name: 'temporal',
    command: await findTemporal(log),
    args: [
      ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', `${port}`, '--ui-port', `${uiPort}`],
      ...['--log-level', 'warn', '--db-filename', path.join(dataDir, 'temporal.db')],
      ...DYNAMIC_CONFIG.flatMap((value) => ['--dynamic-config-value', value]),
      ...SQLITE_PRAGMAS.flatMap((value) => ['--sqlite-pragma', value]),
    ],
    dataDir,
    url: address,
    stopSignal: 'SIGTERM',
    log,
    probe: () => probe(address),
  })
}

async function probe(address: string): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: PROBE_TIMEOUT_MS })
  try {
    await connection.withDeadline(Date.now() + PROBE_TIMEOUT_MS, () =>
      connection.workflowService.describeNamespace({ namespace: 'default' }),
    )
  } finally {
    await connection.close()
  }
}
