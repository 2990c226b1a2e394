/** Builds the console into console/dist, on the typed client in client/dist. scripts/bootstrap.mjs runs it. */
import { createHash } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { build, type Metafile, type Plugin } from 'esbuild'
import { JOIN_STYLE, type Manifest } from '../api/console/site.ts'
import { ROOT } from '../dev/development.ts'
import { licencesOf } from './licenses.ts'

const folder = path.join(ROOT, 'console')
const outdir = path.join(folder, 'dist')

/** Has each view import console/shared.ts first, so that its modules are in one chunk and not in a dozen. */
const SHARED: Plugin = {
  name: 'shared',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/console\/(?:main|views\/.+)\.ts$/ }, async ({ path: file }) => ({
      contents: `import '${path.join(folder, 'shared.ts')}'\n${await readFile(file, 'utf8')}`,
      loader: 'ts',
    })),
}

/** Leaves out the parts of the client that the console does not use: it sends messages and answers calls by operations. */
const LEFT_OUT: Plugin = {
  name: 'left-out',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/client\/dist\/(?:answer|organization|serve-tools|tools)\.js$/ }, () => ({
      contents: 'export const createAnswer = 0, createToolRunner = 0, followEvents = 0, serveTools = 0',
    })),
}

/** Bundles the scripts, one chunk for each view, and the styles. Their names contain a hash of their content. */
async function buildConsole(): Promise<void> {
  await rm(outdir, { recursive: true, force: true })
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['console/main.ts', 'console/style.css'],
    outdir,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    alias: { 'agent-session-client': path.join(ROOT, 'client', 'dist', 'index.js') },
    bundle: true,
    splitting: true,
    plugins: [SHARED, LEFT_OUT],
    format: 'esm',
    target: 'es2022',
    minify: true,
    metafile: true,
    logLevel: 'warning',
  })
  const licences = licencesOf(metafile)
  const licencesFile = `licenses-${createHash('sha256').update(licences).digest('hex').slice(0, 8)}.txt`
  await writeFile(path.join(outdir, licencesFile), licences)
  await writeFile(
    path.join(outdir, 'manifest.json'),
    JSON.stringify({ ...manifestOf(metafile), licences: licencesFile }),
  )
  // The page of invitations is served without the console, too.
  const join = { entryPoints: ['console/join.css'], outfile: path.join(outdir, JOIN_STYLE) }
  await build({ absWorkingDir: ROOT, ...join, bundle: true, minify: true, logLevel: 'warning' })
  const icons = await readFile(path.join(folder, 'icons.svg'), 'utf8')
  await writeFile(path.join(outdir, 'icons.svg'), icons.replace(/>\s+</g, '><').trim())
}

/** Lists what a page of each view loads. Views are named by their modules: `views/agents/agents.ts`. */
function manifestOf({ outputs }: Metafile): Omit<Manifest, 'licences'> {
  const fileOf = (source: string) => Object.keys(outputs).find((file) => outputs[file]?.entryPoint === source) ?? ''
  const staticOf = (file: string, found = new Set<string>()): Set<string> => {
    if (found.has(file)) return found
    found.add(file)
    for (const { path: next, kind } of outputs[file]?.imports ?? [])
      if (kind === 'import-statement') staticOf(next, found)
    return found
  }
  const main = fileOf('console/main.ts')
  const first = staticOf(main)
  const views = Object.entries(outputs).flatMap(([file, { entryPoint = '' }]) => {
    const [, name] = /^console\/views\/(?:.+\/)?([^/]+)\.ts$/.exec(entryPoint) ?? []
    if (name === undefined) return []
    return [[name, [...staticOf(file)].filter((part) => !first.has(part)).map(nameOf)] as const]
  })
  return {
    style: nameOf(fileOf('console/style.css')),
    main: nameOf(main),
    shared: [...first].filter((file) => file !== main).map(nameOf),
    views: Object.fromEntries(views),
  }
}

const nameOf = (file: string): string => path.basename(file)

await buildConsole()
