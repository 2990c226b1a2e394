/**
 * node scripts/dependencies.ts: checks the licences of the packages that ship, in the image or in a bundle, and asks the
 * registry whether any of them has a known vulnerability. `npm run check` runs it. It writes nothing.
 */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { missingLicences } from './licenses.ts'
import { findNeeded, type LockedPackage } from './prune.ts'

const ROOT = path.dirname(import.meta.dirname)

/** Licences that ask for no more than to be kept. */
const ALLOWED = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'Unlicense',
  'Zlib',
]

/** Packages with another licence, or with none in their package.json, and why they may ship. */
const LICENCE_EXCEPTIONS: { name: RegExp; licence: string; why: string }[] = [
  {
    name: /^@img\/sharp-libvips-/,
    licence: 'LGPL-3.0-or-later',
    why: 'a library of its own, unchanged, which sharp loads when it runs and anybody can replace',
  },
  {
    name: /^@img\/sharp-wasm32$/,
    licence: 'Apache-2.0 AND LGPL-3.0-or-later AND MIT',
    why: 'in the lock file only: npm installs the build of the system instead',
  },
  { name: /^caniuse-lite$/, licence: 'CC-BY-4.0', why: 'data, unchanged, with its licence beside it' },
  { name: /^unionfs$/, licence: 'none', why: 'its file LICENSE is the Unlicense' },
]

/** Advisories that do not concern this service, by their GHSA id: why, and when that has to be looked at again. */
const ADVISORY_EXCEPTIONS: AdvisoryExceptions = {}

export type AdvisoryExceptions = Record<string, { why: string; until: `${number}-${number}-${number}` }>

/** Severities that fail the check. Others are only printed. */
const SEVERE = ['high', 'critical']
const ASK_MS = 60_000

export type Locked = LockedPackage & {
  license?: string
  os?: string[]
  cpu?: string[]
  libc?: string[]
}

/** Whether the image's systems install a package: Linux with glibc, on x64 or arm64. */
const isForImage = ({ os = ['linux'], cpu = ['x64'], libc = ['glibc'] }: Locked): boolean =>
  os.includes('linux') && libc.includes('glibc') && cpu.some((one) => one === 'x64' || one === 'arm64')

/** Returns the folders of the packages that ship: in the image, or in a bundle, where they are for development. */
export function findShipped(packages: Record<string, Locked>, bundled: readonly string[]): string[] {
  const inImage = [...findNeeded(packages)].filter((folder) => isForImage(packages[folder] ?? {}))
  return [...new Set([...inImage, ...bundled.map((name) => `node_modules/${name}`)])].sort()
}

/** Lists the packages in the bundles, from the licences that these keep. */
function readBundled(): string[] {
  const console = path.join(ROOT, 'console/dist')
  const files = readdirSync(console).filter((name) => name.startsWith('licenses-'))
  const texts = [...files.map((name) => path.join(console, name)), 'client/dist/browser.js', 'embed/dist/embed.js']
  const heads = texts.flatMap((file) => [
    ...readFileSync(path.resolve(ROOT, file), 'utf8').matchAll(/^((?:@[\w.-]+\/)?[\w.-]+) \d+\.\d+\.\d\S*: /gm),
  ])
  const names = [...new Set(heads.map(([, name = '']) => name))]
  for (const sure of ['preact', 'eventsource-parser'])
    if (!names.includes(sure)) throw new Error(`The licences of the bundles do not name ${sure}, which is in them.`)
  return names
}

/** Whether an SPDX expression is satisfied by allowed licences. */
export function isAllowed(expression: string): boolean {
  const words = expression.match(/[()]|[^\s()]+/g) ?? []
  const readOne = (): boolean => {
    const word = words.shift() ?? ''
    if (word !== '(') return ALLOWED.includes(word)
    const inner = readAny()
    return words.shift() === ')' && inner
  }
  const readAll = (): boolean => {
    let all = readOne()
    while (words[0] === 'AND') {
      words.shift()
      all = readOne() && all
    }
    return all
  }
  const readAny = (): boolean => {
    let any = readAll()
    while (words[0] === 'OR') {
      words.shift()
      any = readAll() || any
    }
    return any
  }
  return readAny() && words.length === 0
}

const nameOf = (folder: string): string => folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)

/** Returns a sentence for each shipped package whose licence is not allowed. */
export function licenceProblems(packages: Record<string, Locked>, shipped: readonly string[]): string[] {
  return shipped.flatMap((folder) => {
    const [name, licence] = [nameOf(folder), packages[folder]?.license ?? 'none']
    const isException = LICENCE_EXCEPTIONS.some((one) => one.name.test(name) && one.licence === licence)
    if (isAllowed(licence) || isException) return []
    return [`${name} ships under the licence ${licence}; replace it, or say in scripts/dependencies.ts why it may`]
  })
}

type Advisory = { url: string; title: string; severity: string; range: string }
type Vulnerable = { nodes: string[]; via: (string | Advisory)[] }
/** Answer of `npm audit --json`. Without `vulnerabilities` the registry could not be asked. */
export type Audit = { vulnerabilities?: Record<string, Vulnerable>; message?: string }

/** Returns the advisories on shipped packages. `failing` ones fail the check; the others are only printed. */
export function judgeAudit(
  { vulnerabilities = {} }: Audit,
  shipped: readonly string[],
  exceptions: AdvisoryExceptions,
  today: string,
): { failing: string[]; told: string[] } {
  const failing: string[] = []
  const told: string[] = []
  for (const [name, { nodes, via }] of Object.entries(vulnerabilities)) {
    if (!nodes.some((node) => shipped.includes(node))) continue
    for (const advisory of via) {
      // A text names the package that has the advisory, which is in the list itself.
      if (typeof advisory === 'string') continue
      const id = /GHSA-[\w-]+/.exec(advisory.url)?.[0] ?? advisory.url
      const exception = exceptions[id]
      const isExcepted = exception !== undefined && today <= exception.until
      const said = `${name} (${advisory.range}): ${advisory.severity}, ${advisory.title}, ${advisory.url}`
      if (isExcepted) told.push(`${said}; left until ${exception.until}: ${exception.why}`)
      else if (SEVERE.includes(advisory.severity)) failing.push(said)
      else told.push(said)
    }
  }
  return { failing, told }
}

/** Asks the registry for the advisories on all installed packages. */
async function askRegistry(): Promise<Audit> {
  // Settings of the machine could leave packages out, or give an answer without asking.
  const all = ['--offline=false', '--include=dev', '--include=optional', '--include=peer']
  const args = ['audit', '--json', '--fetch-retries=0', '--fetch-timeout=20000', ...all]
  const options = { cwd: ROOT, timeout: ASK_MS, maxBuffer: 64 * 1024 ** 2 }
  // npm ends with 1 for each vulnerability, and also when it could not ask.
  const { stdout } = await promisify(execFile)('npm', args, options).catch((error) => error)
  try {
    return JSON.parse(stdout)
  } catch {
    return { message: 'npm audit gave no answer' }
  }
}

async function main(): Promise<number> {
  const print = (line: string) => process.stdout.write(`${line}\n`)
  const { packages } = JSON.parse(readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8'))
  const shipped = findShipped(packages, readBundled())
  const problems = licenceProblems(packages, shipped)
  // Throws if the image would lack the text of a licence.
  missingLicences()
  const audit = await askRegistry()
  if (audit.vulnerabilities === undefined) {
    print(
      `Known vulnerabilities: could not ask the registry (${audit.message ?? 'no reason'}), so nothing is known of them.`,
    )
  }
  const { failing, told } = judgeAudit(audit, shipped, ADVISORY_EXCEPTIONS, new Date().toISOString().slice(0, 10))
  for (const line of [...told, ...failing, ...problems]) print(line)
  const vulnerabilities = audit.vulnerabilities === undefined ? 'an unknown number of' : failing.length
  print(
    `${shipped.length} packages ship; ${problems.length} licences and ${vulnerabilities} vulnerabilities are in the way`,
  )
  return problems.length + failing.length === 0 ? 0 : 1
}

if (import.meta.main) process.exitCode = await main()
