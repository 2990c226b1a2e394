/** Builds the element `<agent-chat>` into embed/dist, on the typed client in client/dist. */
import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import webpack from 'webpack'
import { ROOT } from '../dev/development.ts'

const folder = path.join(ROOT, 'embed')
const dist = path.join(folder, 'dist')

/** Makes one module of the element and the client. */
export async function buildEmbed(): Promise<void> {
  await rm(dist, { recursive: true, force: true })
  const tsc = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  await promisify(execFile)(process.execPath, [tsc, '-p', folder]).catch(({ stdout }) => {
    throw new Error(`the element does not compile:\n${stdout}`)
  })
  const compiler = webpack({
    mode: 'production',
    target: 'es2022',
    entry: path.join(dist, 'main.js'),
    // The module finds the service by its own address.
    module: { parser: { javascript: { importMeta: false, url: false } } },
    resolve: { alias: { 'agent-session-client': path.join(ROOT, 'client', 'dist', 'index.js') } },
    experiments: { outputModule: true },
    output: { path: dist, filename: 'embed.js', library: { type: 'module' } },
  })
  const stats = await promisify(compiler.run.bind(compiler))()
  if (stats === undefined || stats.hasErrors()) throw new Error(`the element cannot be bundled:\n${stats}`)
}
