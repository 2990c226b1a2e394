import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { call, modelId } from '../support/http.ts'
import { whyNoPython } from '../support/python.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

const run = promisify(execFile)
const GENERATOR = 'openapi-python-client==0.29.1'
const DRIVER = path.resolve('test/support/python/drive_generated_client.py')
/** Kept between runs. */
const VENV = path.resolve('.data/python', GENERATOR)
const INSTALL_MS = 120_000

const reason = whyNoPython()
if (reason !== undefined) process.stdout.write(`without CI no Python client is generated: ${reason}\n`)

let folder: string
let api: Organization
beforeAll(async () => {
  api = await newOrganization()
  folder = await mkdtemp(path.join(tmpdir(), 'python-client-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Installs the generator once. */
async function install(): Promise<string> {
  const bin = path.join(VENV, 'bin')
  await mkdir(path.dirname(VENV), { recursive: true })
  const isThere = await run(path.join(bin, 'openapi-python-client'), ['--version']).catch(() => undefined)
  if (isThere === undefined) {
    await run('python3', ['-m', 'venv', VENV])
    await run(path.join(bin, 'pip'), ['install', '--quiet', '--disable-pip-version-check', GENERATOR])
  }
  return bin
}
// In CI it fails instead, because nobody checks what was skipped there.
;(reason === undefined || process.env.CI ? describe : describe.skip)(
  'the Python client that openapi-python-client generates',
  () => {
    it(
      'has every operation with a JSON body, and drives a turn with a tool of its own',
      async () => {
        const bin = await install()
        const { body: document } = await call(api, 'GET', '/openapi.json')
        const source = path.join(folder, 'openapi.json')
        await writeFile(source, JSON.stringify(document))
        const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
        const options = ['--path', source, '--meta', 'none', '--output-path', path.join(folder, 'generated')]
        const { stdout: told, stderr } = await run(path.join(bin, 'openapi-python-client'), ['generate', ...options], {
          env,
        })
        // It knows neither pictures nor texts that are not JSON.
        const warnings = [...(told + stderr).matchAll(/^WARNING parsing (.+) within/gm)].map(
          ([, operation]) => operation,
        )
        expect([...new Set(warnings)].sort()).toEqual([
          'GET /v1/images/{image_id}',
          'GET /v1/images/{image_id}/thumbnail',
          'POST /v1/agents/import',
        ])
        const { stdout } = await run(path.join(bin, 'python'), [
          DRIVER,
          folder,
          api.url,
          api.id,
          await modelId(api, 'llmsim-script'),
        ])
        expect(JSON.parse(stdout)).toEqual({ asked: 'Which colour?', iterations: 2, answer: ['Blue it is.'] })
      },
      INSTALL_MS,
    )
  },
)
