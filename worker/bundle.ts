import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode } from '@temporalio/worker'

const silent = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} }

/**
 * Bundles the workflows into one script. It is optimized, because the sandbox runs all of it again for every turn:
 * that is 15 % of a worker's cost of a plain turn. The source map stays inside, for stack traces.
 */
export const bundleWorkflows = (): Promise<{ code: string }> =>
  bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../workflows/index.ts', import.meta.url)),
    webpackConfigHook: (config) => ({ ...config, mode: 'production' }),
    logger: silent,
  })
