/** Writes dist/workflow-bundle.js, which a production worker loads instead of bundling the workflows at every start. */
import { mkdir, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { print } from '../dev/terminal.ts'
import { bundleWorkflows } from '../worker/bundle.ts'

const folder = fileURLToPath(new URL('../dist', import.meta.url))

const { code } = await bundleWorkflows()
await mkdir(folder, { recursive: true })
await writeFile(`${folder}/workflow-bundle.js`, code)
print(`Wrote dist/workflow-bundle.js (${Math.round(code.length / 1024)} KiB).`)
