/**
 * npm run record-histories [-- name…]: runs turns of every kind, or of the named kinds, against services of its own
 * and writes their Temporal histories to test/unit/workflows/histories, for test/unit/workflows/replay.test.ts. The
 * histories of releases, such as `first-release-…`, are left unchanged.
 */
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Client } from '@temporalio/client'
import { ROOT, serviceEnvironment } from '../dev/development.ts'
import { freePorts, type RunningServices, startServices, startTemporal } from '../dev/services/index.ts'
import { createTemplateDatabase } from '../dev/services/postgres.ts'
import { print } from '../dev/terminal.ts'
import { applyMigrations } from '../platform/postgres/migrate.ts'
import { toHistoryFile } from '../test/support/history-json.ts'
import { waitFor } from '../test/support/http.ts'
import { createLab } from '../test/support/lab.ts'
import { startService } from '../test/support/service.ts'
import { withClient } from '../test/support/temporal.ts'
import { type Scenario, scenarios } from '../test/unit/workflows/scenarios.ts'

/** Limit low enough for a turn of several steps to continue as new, which keeps that history short. */
const CONTINUE_AFTER = 'limit.historyCount.suggestContinueAsNew=40'
const TEMPLATE_DATABASE = 'agent_sessions_histories'

const folder = path.join(ROOT, 'test', 'unit', 'workflows', 'histories')
// Named like the tests' folders, so that the next npm test removes what a killed run leaves.
const dataDir = path.join(ROOT, '.data', `test-${process.pid}`)

/** Returns the histories of all runs of a workflow, the first one first. */
async function fetchRuns(client: Client, workflowId: string): Promise<string[]> {
  const runs: string[] = []
  let runId: string | undefined
  do {
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory()
    runs.unshift(toHistoryFile(history))
    runId = history.events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId || undefined
  } while (runId !== undefined)
  return runs
}

async function record({ name, play, ...options }: Scenario): Promise<void> {
  const service = await startService({ ...options, capabilities: [createLab().capability] })
  try {
    const workflowId = await play(service.url, service)
    const runs = await withClient(service, async (client) => {
      const ended = async () => (await client.workflow.getHandle(workflowId).describe()).status.name !== 'RUNNING'
      await waitFor(async () => (await ended().catch(() => false)) || undefined, `the end of ${name}`)
      return fetchRuns(client, workflowId)
    })
    for (const [index, run] of runs.entries()) {
      const file = runs.length === 1 ? `${name}.json` : `${name}-run-${index + 1}.json`
      await writeFile(path.join(folder, file), run)
      print(`${file}: ${run.split('"eventId"').length - 1} events`)
    }
  } finally {
    await service.stop()
  }
}

async function startAll(): Promise<RunningServices> {
  const [postgres = 0, redis = 0, temporal = 0, temporalUi = 0] = await freePorts(4)
  const log = () => {}
  const place = { dataDir: path.join(dataDir, 'temporal'), port: temporal, uiPort: temporalUi, log }
  const server = await startTemporal({ ...place, dynamicConfig: [CONTINUE_AFTER] })
  const env = { TEMPORAL_ADDRESS: server.url }
  const ports = { postgres, redis, temporal, temporalUi }
  const services = await startServices({ dataDir, ports, env, log, durability: 'none' })
  return { ...services, stop: async () => void (await Promise.all([services.stop(), server.stop()])) }
}

async function recordAll(): Promise<void> {
  const services = await startAll()
  try {
    const template = await createTemplateDatabase(services.databaseUrl, TEMPLATE_DATABASE)
    await applyMigrations(template)
    Object.assign(process.env, serviceEnvironment(services), { TEST_TEMPLATE_DATABASE_URL: template })
    const names = process.argv.slice(2)
    const wanted = scenarios.filter(({ name }) => names.length === 0 || names.includes(name))
    for (const scenario of wanted) await record(scenario)
  } finally {
    await services.stop()
  }
}

try {
  await recordAll()
} finally {
  await rm(dataDir, { recursive: true, force: true })
}
process.exit()
