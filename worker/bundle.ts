import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode } from '@temporalio/worker'

const silent = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} }

/**
 * The workflows as one script. Optimised, because the sandbox runs all of it again for every turn: that is 15 % of
 * what a worker costs a plain turn. Its source map stays inside, for stack traces.
 */
export const bundleWorkflows = (): Promise<{ code: string }> =>
  bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../workflows/index.ts', import.meta.url)),
    webpackConfigHook: (config) => ({ ...config, mode: 'production' }),
    logger: silent,
  })
