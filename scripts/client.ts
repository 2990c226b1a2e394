/**
 * Generates the typed client from the contract, and builds it into client/dist, and the element <agent-chat> on it into
 * embed/dist. scripts/bootstrap.mjs runs it.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { openapiDocument } from '../api/http/openapi.ts'
import { endpoints } from '../contract/index.ts'
import { ROOT } from '../dev/development.ts'
import { operationsModule } from './client-operations.ts'
import { buildEmbed } from './embed.ts'
import { generateTypeScript } from './hey-api.ts'
import { addLicences } from './licenses.ts'

const folder = path.join(ROOT, 'client')
const generated = path.join(folder, 'src', 'generated')
const dist = path.join(folder, 'dist')
const { version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))

async function generate(): Promise<void> {
  const document = openapiDocument(endpoints, { version, prefix: '', isOpen: false })
  await generateTypeScript(document, generated, ['@hey-api/typescript'])
  await writeFile(path.join(generated, 'operations.ts'), operationsModule(endpoints))
}

async function compile(): Promise<void> {
  await rm(dist, { recursive: true, force: true })
  const tsc = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  await promisify(execFile)(process.execPath, [tsc, '-p', folder]).catch(({ stdout }) => {
    throw new Error(`the client does not compile:\n${stdout}`)
  })
}

/** Makes one module of all, for pages without a bundler. */
async function bundle(): Promise<void> {
  const outfile = path.join(dist, 'browser.js')
  const { metafile } = await build({
    absWorkingDir: ROOT,
    metafile: true,
    entryPoints: [path.join(dist, 'index.js')],
    outfile,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    logLevel: 'warning',
  })
  await addLicences(outfile, metafile)
}

await generate()
await compile()
await bundle()
await buildEmbed()
