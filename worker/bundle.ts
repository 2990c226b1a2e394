import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode } from '@temporalio/worker'

const silent = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} }

/**
 * Code in front of the bundle. The library keeps the stack of each promise that a workflow makes, translated with the
 * source map: a quarter of what a turn costs the thread of the workflows. Failures of workflows then have no stack; the
 * service's own failures come from activities, whose stacks are logged.
 */
const WITHOUT_STACKS = 'Error.stackTraceLimit=0;'

const WORKFLOWS = fileURLToPath(new URL('../workflows', import.meta.url))
/** Converter of payloads, in workflows and activities. */
export const PAYLOAD_CONVERTER = path.join(WORKFLOWS, 'payload-converter.ts')
const DIST = fileURLToPath(new URL('../dist', import.meta.url))

/**
 * Returns the workflows as one script. Making it takes some seconds, so it is kept in dist/, under a name made of what it
 * is made from.
 */
export async function bundleWorkflows(): Promise<{ code: string }> {
  const name = `workflows-${await hashSources()}.js`
  const file = path.join(DIST, name)
  try {
    return { code: await readFile(file, 'utf8') }
  } catch {
    const code = await bundle()
    // Where nothing can be written, as in a container, each start makes it anew.
    await keep(file, code).catch(() => {})
    return { code }
  }
}

/** The bundle is optimized, because the sandbox runs all of it again for every turn: 15 % of a plain turn's cost. */
async function bundle(): Promise<string> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: path.join(WORKFLOWS, 'index.ts'),
    payloadConverterPath: PAYLOAD_CONVERTER,
    webpackConfigHook: (config) => ({ ...config, mode: 'production' }),
    logger: silent,
  })
  return WITHOUT_STACKS + code
}

/** Hashes what the bundle depends on: the workflows, which import types only, this file and the library. */
async function hashSources(): Promise<string> {
  const names = (await readdir(WORKFLOWS)).filter((name) => name.endsWith('.ts')).sort()
  const library = createRequire(import.meta.url).resolve('@temporalio/workflow/package.json')
  const files = [...names.map((name) => path.join(WORKFLOWS, name)), fileURLToPath(import.meta.url), library]
  const hash = createHash('sha256')
  for (const file of files) hash.update(await readFile(file))
  return hash.digest('hex').slice(0, 16)
}

/** Writes a file that other processes may be reading or writing, and removes the files of earlier versions. */
async function keep(file: string, code: string): Promise<void> {
  await mkdir(DIST, { recursive: true })
  const draft = `${file}.${process.pid}`
  await writeFile(draft, code)
  await rename(draft, file)
  const others = (await readdir(DIST)).filter(
    (name) => /^workflows-\w+\.js$/.test(name) && name !== path.basename(file),
  )
  for (const name of others) await rm(path.join(DIST, name), { force: true })
}
