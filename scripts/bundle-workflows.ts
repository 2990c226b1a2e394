/** Writes dist/workflow-bundle.js, which a production worker loads instead of bundling the workflows at every start. */
import { mkdir, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode } from '@temporalio/worker'
import { print } from './terminal.ts'

const workflowsPath = fileURLToPath(new URL('../workflows/index.ts', import.meta.url))
const folder = fileURLToPath(new URL('../dist', import.meta.url))

const { code } = await bundleWorkflowCode({ workflowsPath })
await mkdir(folder, { recursive: true })
await writeFile(`${folder}/workflow-bundle.js`, code)
print(`Wrote dist/workflow-bundle.js (${Math.round(code.length / 1024)} KiB).`)
