import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { createEmptyDatabase } from '../support/database.ts'

const PAGE = 'docs/adding-a-resource.md'
/** What the copy shares, does not need, or makes itself. */
const LEFT_OUT = ['.git', '.data', 'node_modules', 'prisma/generated', 'client/dist']
const LIMIT_MS = 240_000

/** Hunk of a diff: lines that a file has, and the lines that replace them. */
type Hunk = { file: string; before: string; after: string }

const textOf = (lines: string[], marks: string): string =>
  lines
    .filter((line) => marks.includes(line.charAt(0)))
    .map((line) => `${line.slice(1)}\n`)
    .join('')

/** Returns the files of a page, by the path in their first line. */
const filesOf = (page: string): [string, string][] =>
  [...page.matchAll(/^```ts\n\/\/ (\S+)\n(.*?)^```$/gms)].map(([, file = '', text = '']) => [file, text])

/** Returns the changes of a page. Each `+++` names a file, and each `@@` begins a hunk. */
const hunksOf = (page: string): Hunk[] =>
  [...page.matchAll(/^```diff\n(.*?)^```$/gms)].flatMap(([, block = '']) =>
    block.split(/^\+\+\+ /m).flatMap((part) => {
      const [file = '', ...hunks] = part.split(/\n@@\n/)
      return hunks.map((hunk) => {
        const lines = hunk.replace(/\n$/, '').split('\n')
        return { file, before: textOf(lines, ' -'), after: textOf(lines, ' +') }
      })
    }),
  )

let folder: string
let page: string
beforeAll(async () => {
  page = await readFile(PAGE, 'utf8')
  folder = await mkdtemp(path.join(tmpdir(), 'adding-a-resource-'))
  const root = process.cwd()
  await cp(root, folder, {
    recursive: true,
    filter: (source) => !LEFT_OUT.includes(path.relative(root, source)),
  })
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Runs Node.js in the copy. Throws with everything that the program printed. */
async function run(args: string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const options = { cwd: folder, env: { ...process.env, ...env }, timeout: LIMIT_MS }
  const done = promisify(execFile)(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], options)
  const { stdout, stderr } = await done.catch(({ stdout, stderr }) => {
    throw new Error(`${args.join(' ')}:\n${stdout}${stderr}`)
  })
  return stdout + stderr
}

/** Writes the page's files into the copy and applies its changes. Returns the paths. */
async function write(): Promise<{ written: string[]; changed: string[] }> {
  const files = filesOf(page)
  const hunks = hunksOf(page)
  for (const [file, text] of files) {
    await mkdir(path.join(folder, path.dirname(file)), { recursive: true })
    await writeFile(path.join(folder, file), text)
  }
  for (const { file, before, after } of hunks) {
    const text = await readFile(path.join(folder, file), 'utf8')
    const found = text.split(before).length - 1
    expect({ file, before, found }).toEqual({ file, before, found: 1 })
    await writeFile(
      path.join(folder, file),
      text.replace(before, () => after),
    )
  }
  return { written: files.map(([file]) => file), changed: [...new Set(hunks.map(({ file }) => file))] }
}

/** Migrates a database, and runs the page's test and some unit tests against a shared service of the copy. */
const PROGRAM = `
  import { spawn } from 'node:child_process'
  import { applyMigrations } from './platform/postgres/migrate.ts'
  import { createTestServices } from './test/run/shared-services.ts'
  await applyMigrations(process.env.TEST_TEMPLATE_DATABASE_URL)
  const services = await createTestServices(process.env)
  const tests = ['test/service/notes.test.ts', 'test/unit/walks.test.ts', 'test/unit/layers.test.ts']
  const env = { ...process.env, TEST_SERVICES_URL: services.url, TEST_CPU_FILE: undefined }
  const jest = spawn(process.execPath, ['node_modules/jest/bin/jest.js', '--runInBand', ...tests], { env, stdio: 'inherit' })
  jest.once('exit', async (code) => {
    const problems = await services.stop()
    process.stderr.write(problems.join('\\n'))
    process.exit(code === 0 && problems.length === 0 ? 0 : 1)
  })`

const BIOME = 'node_modules/@biomejs/biome/bin/biome'
const PRISMA = 'node_modules/prisma/build/index.js'
const TSC = 'node_modules/typescript/bin/tsc'

it(
  'leads to a resource that compiles and passes its test',
  async () => {
    const { written, changed } = await write()
    expect([written.length, changed.length]).toEqual([8, 12])
    // As npm run migration does, without the typed client. Generating needs no engine, so any file will do.
    await run([PRISMA, 'generate', '--no-hints'], { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath })
    expect(await run(['scripts/migration.ts', 'notes'])).toContain('_notes/migration.sql')
    await run([BIOME, 'format', '--vcs-enabled=false', ...written, ...changed])
    // The other tests import the whole service.
    const sources = [...written, ...changed.filter((file) => /(?<!\.test)\.ts$/.test(file))]
    const project = { extends: './tsconfig.json', files: sources, include: [] }
    await writeFile(path.join(folder, 'tsconfig.page.json'), JSON.stringify(project))
    await run([TSC, '--noEmit', '-p', 'tsconfig.page.json'])
    const database = await createEmptyDatabase()
    try {
      await writeFile(path.join(folder, 'run-tests.ts'), PROGRAM)
      await run(['run-tests.ts'], { TEST_TEMPLATE_DATABASE_URL: database.url })
    } finally {
      await database.drop()
    }
  },
  LIMIT_MS,
)
