import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  bundleWorkflowCode,
  makeTelemetryFilterString,
  type ReplayWorkerOptions,
  Runtime,
  Worker,
} from '@temporalio/worker'
import { DeterminismViolationError } from '@temporalio/workflow'
import { bundleWorkflows } from '../../../worker/bundle.ts'
import { fromHistoryFile } from '../../support/history-json.ts'

const folder = new URL('./histories/', import.meta.url)
const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
const read = (name: string) => fromHistoryFile(readFileSync(new URL(name, folder), 'utf8'))
const silent = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} }

type Bundle = NonNullable<ReplayWorkerOptions['workflowBundle']>

beforeAll(() => {
  // Temporal's core logs every nondeterminism. Here they are intended.
  const logging = { filter: makeTelemetryFilterString({ core: 'ERROR' }) }
  Runtime.install({ shutdownSignals: [], logger: silent, telemetryOptions: { logging } })
})
afterAll(() => Runtime.instance().shutdown())

/** Replays histories. Returns the error of each, or undefined if the workflows repeat it. */
async function replay(workflowBundle: Bundle, names: string[]): Promise<Record<string, Error | undefined>> {
  const histories = names.map((name) => ({ workflowId: name, history: read(name) }))
  const errors: Record<string, Error | undefined> = {}
  for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle }, histories)) {
    errors[workflowId] = error
  }
  return errors
}

/** Bundles workflows that are not the service's. */
const bundleOther = (name: string): Promise<Bundle> =>
  bundleWorkflowCode({ workflowsPath: fileURLToPath(new URL(name, import.meta.url)), logger: silent })

describe('the workflows of this version', () => {
  it('continue everything that earlier versions have started', async () => {
    expect(files.filter((name) => name.startsWith('first-release-')).length).toBeGreaterThanOrEqual(3)
    const errors = await replay(await bundleWorkflows(), files)
    expect(errors).toEqual(Object.fromEntries(files.map((name) => [name, undefined])))
  })
})

describe('other workflows', () => {
  it.each(['./turn-with-a-timer.ts', './turn-without-steps.ts'])('%s cannot', async (other) => {
    const errors = await replay(await bundleOther(other), files)
    expect(Object.keys(errors)).toEqual(files)
    for (const error of Object.values(errors)) expect(error).toBeInstanceOf(DeterminismViolationError)
  })
})
