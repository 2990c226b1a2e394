/**
 * node scripts/prune.ts: removes from node_modules what the image does not run.
 *
 * npm prune keeps development packages that are optional peers of others (Prisma's command line, TypeScript), builds for
 * other systems and databases, and types.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** An entry of `packages` in package-lock.json. */
export type LockedPackage = {
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional?: boolean }>
}

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
/** Native halves of Temporal's library, one folder for each system. */
const BRIDGES = 'node_modules/@temporalio/core-bridge/releases'
const BRIDGE_OF: Partial<Record<NodeJS.Architecture, string>> = {
  x64: 'x86_64-unknown-linux-gnu',
  arm64: 'aarch64-unknown-linux-gnu',
}
/**
 * Files that nothing reads: other databases' builds, just-bash's Python and command line, Rust, OpenTelemetry's drafts,
 * tests, types, source maps.
 */
const UNUSED = [
  /@prisma\/client\/runtime\/(.*(cockroachdb|mysql|sqlite|sqlserver|_small_)|wasm-compiler-edge)/,
  /^node_modules\/just-bash\/(vendor|dist\/bin)\//,
  /^node_modules\/@opentelemetry\/semantic-conventions\/dist\/(experimental|index-incubating)/,
  /^node_modules\/@temporalio\/core-bridge\/(sdk-core|src|bridge-macros)\//,
  /\/(test|tests|__tests__)\/|\.d\.[cm]?ts$|\.map$/,
]

/** Returns the paths of the packages that the root's dependencies need. Optional peers are not needed. */
export function findNeeded(packages: Record<string, LockedPackage>): Set<string> {
  const needed = new Set<string>()
  const visit = (from: string, names: string[]) => {
    for (const name of names) {
      const found = resolve(packages, from, name)
      if (found === undefined || needed.has(found)) continue
      needed.add(found)
      visit(found, namesOf(packages[found] ?? {}))
    }
  }
  visit('', Object.keys(packages['']?.dependencies ?? {}))
  return needed
}

function namesOf(entry: LockedPackage): string[] {
  const { dependencies, optionalDependencies, peerDependencies = {}, peerDependenciesMeta = {} } = entry
  const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true)
  return [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]
}

/** Finds a package as Node does: in the node_modules of the package that imports it, then in each one above. */
function resolve(packages: Record<string, LockedPackage>, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const candidate = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`
    if (packages[candidate] !== undefined) return candidate
    if (folder === '') return undefined
  }
}

/** Lists the files below a folder, as paths from the root. */
const listFiles = (folder: string): string[] =>
  readdirSync(path.join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => path.relative(ROOT, path.join(entry.parentPath, entry.name)))

function prune(): void {
  const { packages } = JSON.parse(readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8'))
  const needed = findNeeded(packages)
  const remove = (file: string) => rmSync(path.join(ROOT, file), { recursive: true, force: true })
  Object.keys(packages)
    .filter((name) => name !== '' && !needed.has(name))
    .forEach(remove)
  const bridges = readdirSync(path.join(ROOT, BRIDGES)).filter((name) => name !== BRIDGE_OF[process.arch])
  bridges.map((name) => `${BRIDGES}/${name}`).forEach(remove)
  listFiles('node_modules')
    .filter((file) => UNUSED.some((pattern) => pattern.test(file)))
    .forEach(remove)
  const scopes = readdirSync(path.join(ROOT, 'node_modules')).filter((name) => name.startsWith('@'))
  scopes
    .map((scope) => `node_modules/${scope}`)
    .filter((scope) => readdirSync(path.join(ROOT, scope)).length === 0)
    .forEach(remove)
  // Commands of packages that are gone, and npm's record of them.
  ;['node_modules/.bin', 'node_modules/.package-lock.json'].forEach(remove)
}

if (import.meta.main) prune()
