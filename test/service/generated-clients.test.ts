import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { call, modelId } from '../support/http.ts'
import { whyNoPython } from '../support/python.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

const run = promisify(execFile)
const PYTHON_GENERATOR = 'openapi-python-client==0.29.1'
const GO_GENERATOR = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'
const GO_RUNTIME = 'github.com/oapi-codegen/runtime@v1.8.0'
const DRIVERS = path.resolve('test/support')
/** Programs that are kept between runs. */
const TOOLS = path.resolve('.data')
const INSTALL_MS = 240_000

const print = (sentence: string) => process.stdout.write(`${sentence}\n`)
const noPython = whyNoPython()
if (noPython !== undefined) print(`without CI no Python client is generated: ${noPython}`)
const noGo = await run('go', ['version']).then(
  () => undefined,
  () => 'there is no go',
)
if (noGo !== undefined) print(`without CI no Go client is generated: ${noGo}`)

let folder: string
let api: Organization
let source: string
let options: string[]
beforeAll(async () => {
  api = await newOrganization()
  folder = await mkdtemp(path.join(tmpdir(), 'generated-clients-'))
  source = path.join(folder, 'openapi.json')
  await writeFile(source, JSON.stringify((await call(api, 'GET', '/openapi.json')).body))
  options = [api.url, api.id, await modelId(api, 'llmsim-script')]
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Installs a generator once. Returns whether it is there: its package may not be fetchable. */
async function fetched(program: string, install: (bin: string) => Promise<unknown>): Promise<boolean> {
  const isThere = await run(program, ['--version']).catch(() => undefined)
  if (isThere !== undefined) return true
  await mkdir(path.dirname(program), { recursive: true })
  try {
    await install(path.dirname(program))
    return true
  } catch (error) {
    if (!isUnreachable(String(error))) throw error
    print(`not generated, because ${path.basename(program)} cannot be fetched: ${error}`)
    return false
  }
}

const isUnreachable = (error: string): boolean =>
  /dial tcp|no such host|connection refused|i\/o timeout|NewConnectionError|Could not find a version/i.test(error)

// In CI they fail instead, because nobody checks what was skipped there.
const unless = (reason: string | undefined) => (reason === undefined || process.env.CI ? it : it.skip)

unless(noPython)(
  'openapi-python-client generates every operation with a JSON body, and drives a turn with a tool of its own',
  async () => {
    const bin = path.join(TOOLS, 'python', PYTHON_GENERATOR, 'bin')
    const isFetched = await fetched(path.join(bin, 'openapi-python-client'), async () => {
      await run('python3', ['-m', 'venv', path.dirname(bin)])
      await run(path.join(bin, 'pip'), ['install', '--quiet', '--disable-pip-version-check', PYTHON_GENERATOR])
    })
    if (!isFetched) return
    const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
    const target = ['--path', source, '--meta', 'none', '--output-path', path.join(folder, 'generated')]
    // Nobody reads the generated code, so it is not formatted.
    const config = path.join(folder, 'python.yml')
    await writeFile(config, 'post_hooks: []\n')
    const args = ['generate', ...target, '--config', config]
    const generated = await run(path.join(bin, 'openapi-python-client'), args, { env })
    // It knows neither pictures nor texts that are not JSON.
    const warnings = [...(generated.stdout + generated.stderr).matchAll(/^WARNING parsing (.+) within/gm)].map(
      ([, operation]) => operation,
    )
    expect([...new Set(warnings)].sort()).toEqual([
      'GET /v1/images/{image_id}',
      'GET /v1/images/{image_id}/thumbnail',
      'POST /v1/agents/import',
    ])
    const driver = path.join(DRIVERS, 'python', 'drive_generated_client.py')
    const { stdout } = await run(path.join(bin, 'python'), [driver, folder, ...options])
    expect(JSON.parse(stdout)).toEqual({ asked: 'Which colour?', iterations: 2, answer: ['Blue it is.'] })
  },
  INSTALL_MS,
)

unless(noGo)(
  'oapi-codegen generates a client in Go that compiles, and drives a turn with a tool of its own',
  async () => {
    const bin = path.join(TOOLS, 'go', GO_GENERATOR.replaceAll('/', '-'))
    const module = path.join(folder, 'go')
    const go = (...args: string[]) =>
      run('go', args, { cwd: module, env: { ...process.env, GOBIN: bin, GOFLAGS: '-mod=mod' } })
    await mkdir(path.join(module, 'api'), { recursive: true })
    await writeFile(path.join(module, 'go.mod'), 'module driver\n\ngo 1.24\n')
    const isFetched = await fetched(path.join(bin, 'oapi-codegen'), async () => {
      await go('install', GO_GENERATOR)
    })
    if (!isFetched) return
    await go('get', GO_RUNTIME)
    const target = ['-generate', 'types,client', '-package', 'api', '-o', path.join(module, 'api', 'api.go')]
    await run(path.join(bin, 'oapi-codegen'), [...target, source])
    await copyFile(path.join(DRIVERS, 'go', 'drive_generated_client.go'), path.join(module, 'main.go'))
    // Without the folder's name in it, an unchanged client is compiled only once.
    const { stdout } = await go('run', '-trimpath', '.', ...options)
    expect(JSON.parse(stdout)).toEqual({
      asked: { question: 'Which colour?' },
      iterations: 2,
      answer: 'Blue it is.',
    })
  },
  INSTALL_MS,
)

it('openapi-ts generates a client in TypeScript that compiles', async () => {
  const target = path.join(folder, 'typescript')
  const program = `
    import { readFileSync } from 'node:fs'
    import { generateTypeScript } from './scripts/hey-api.ts'
    const plugins = ['@hey-api/typescript', '@hey-api/client-fetch', '@hey-api/sdk']
    await generateTypeScript(JSON.parse(readFileSync(${JSON.stringify(source)}, 'utf8')), ${JSON.stringify(target)}, plugins)`
  await run(process.execPath, ['--input-type=module-typescript', '-e', program])
  await writeFile(path.join(target, 'package.json'), '{"type": "module"}')
  await writeFile(
    path.join(target, 'program.ts'),
    `import { listEvents } from './index.ts'
     const { data } = await listEvents({ path: { session_id: '' } })
     for (const event of data?.data ?? [])
       if (event.type === 'turn.completed') console.log(event.data.iterations.toFixed())`,
  )
  const compiler = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022']
  const tsc = path.resolve('node_modules', 'typescript', 'bin', 'tsc')
  const lib = ['--lib', 'es2022,dom,dom.iterable,dom.asynciterable', '--types', '', '--allowImportingTsExtensions']
  await run(process.execPath, [tsc, ...compiler, ...lib, path.join(target, 'program.ts')], { cwd: target })
})
