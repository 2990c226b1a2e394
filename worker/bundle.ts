import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode } from '@temporalio/worker'

const silent = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} }

/**
 * Code in front of the bundle. The library keeps the stack of each promise that a workflow makes, translated with the
 * source map: a quarter of what a turn costs the thread of the workflows. Failures of workflows then have no stack; the
 * service's own failures come from activities, whose stacks are logged.
 */
const WITHOUT_STACKS = 'Error.stackTraceLimit=0;'

/**
 * Bundles the workflows into one script. It is optimized, because the sandbox runs all of it again for every turn:
 * that is 15 % of a worker's cost of a plain turn.
 */
export async function bundleWorkflows(): Promise<{ code: string }> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../workflows/index.ts', import.meta.url)),
    webpackConfigHook: (config) => ({ ...config, mode: 'production' }),
    logger: silent,
  })
  return { code: WITHOUT_STACKS + code }
}
