/** Builds the element `<agent-chat>` into embed/dist, on the typed client in client/dist. */
import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { ROOT } from '../dev/development.ts'
import { addLicences } from './licenses.ts'

const folder = path.join(ROOT, 'embed')
const dist = path.join(folder, 'dist')

/** Makes one module of the element and the client. */
export async function buildEmbed(): Promise<void> {
  await rm(dist, { recursive: true, force: true })
  const tsc = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  await promisify(execFile)(process.execPath, [tsc, '-p', folder]).catch(({ stdout }) => {
    throw new Error(`the element does not compile:\n${stdout}`)
  })
  const outfile = path.join(dist, 'embed.js')
  const { metafile } = await build({
    absWorkingDir: ROOT,
    metafile: true,
    entryPoints: [path.join(dist, 'main.js')],
    outfile,
    alias: { 'agent-session-client': path.join(ROOT, 'client', 'dist', 'index.js') },
    bundle: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    logLevel: 'warning',
  })
  await addLicences(outfile, metafile)
}
