import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { Json } from './http.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

/** Project in a folder of its own into which the packed client is installed. */
export type ClientProject = {
  folder: string
  /** Exports of the package. It is generated here, so this repository's compiler does not know them. */
  exports: Json
  /** Compiles a program against the package. Returns the compiler's complaints. */
  compile(program: string): Promise<string>
  /** Runs a program against the package, with these lines of input. Returns its output. */
  run(program: string, options?: { lines?: string[]; args?: string[]; env?: Record<string, string> }): Promise<string>
  remove(): Promise<void>
}

/** Packs the client that scripts/bootstrap.mjs has built, and installs it without a registry. */
export async function installClient(): Promise<ClientProject> {
  const folder = await mkdtemp(path.join(tmpdir(), 'client-'))
  const { stdout } = await run('npm', ['pack', path.join(ROOT, 'client'), '--json'], { cwd: folder })
  const dependencies = {
    'agent-session-client': `file:${JSON.parse(stdout)[0].filename}`,
    'eventsource-parser': `file:${path.join(ROOT, 'node_modules', 'eventsource-parser')}`,
  }
  await writeFile(path.join(folder, 'package.json'), JSON.stringify({ type: 'module', private: true, dependencies }))
  const options = ['--offline', '--install-links', '--ignore-scripts', '--no-audit', '--no-fund']
  await run('npm', ['install', ...options], { cwd: folder })
  const entry = path.join(folder, 'node_modules', 'agent-session-client', 'dist', 'index.js')
  return {
    folder,
    exports: await import(pathToFileURL(entry).href),
    compile: (program) => compile(folder, program),
    run: async (program, { lines = [], args = [], env = {} } = {}) => {
      const file = path.join(folder, `${randomUUID()}.ts`)
      await writeFile(file, program)
      const options = { cwd: folder, env: { ...process.env, ...env } }
      const running = run(process.execPath, ['--disable-warning=ExperimentalWarning', file, ...args], options)
      running.child.stdin?.end(`${lines.join('\n')}\n`)
      return (await running).stdout
    },
    remove: () => rm(folder, { recursive: true }),
  }
}

async function compile(folder: string, program: string): Promise<string> {
  const file = path.join(folder, 'program.ts')
  await writeFile(file, program)
  const tsc = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--lib', 'es2022,dom']
  return run(process.execPath, [tsc, ...options, '--types', '', file], { cwd: folder }).then(
    () => '',
    ({ stdout, stderr }) => stdout + stderr,
  )
}

/** Returns the programs in a page of the repository. */
export async function programsIn(page: string): Promise<string[]> {
  const text = await readFile(path.join(ROOT, page), 'utf8')
  return [...text.matchAll(/^(`{3,})ts\n(.*?)^\1$/gms)].map(([, , program = '']) => program)
}
