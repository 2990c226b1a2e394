/**
 * node scripts/complete-lockfile.mjs package-lock.json
 *
 * Adds the optional packages for other systems that npm leaves out of a lock file when the registry in use does not
 * list them. `npm ci` on any system refuses a lock file without them. Their entries are derived from their parents':
 * from the name, which tells system and processor, and the version.
 */
import { readFileSync, writeFileSync } from 'node:fs'

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'openharmony', 'sunos', 'win32']
const PROCESSORS = ['arm', 'arm64', 'ia32', 'loong64', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']

/** Looks a package up as Node does: in the parent's own node_modules, then in each one above. */
function findInstalled(packages, parent, name) {
  for (let folder = parent; ; ) {
    const entry = packages[`${folder === '' ? '' : `${folder}/`}node_modules/${name}`]
    if (entry?.version !== undefined || folder === '') return entry
    const above = folder.lastIndexOf('/node_modules/')
    folder = above < 0 ? '' : folder.slice(0, above)
  }
}

function describePlatform(name) {
  const words = name.split(/[-/]/)
  const os = words.find((word) => SYSTEMS.includes(word))
  const cpu = words.find((word) => PROCESSORS.includes(word))
  if (os === undefined && cpu === undefined) return undefined
  const libc = name.includes('musl') ? 'musl' : os === 'linux' && name.includes('gnu') ? 'glibc' : undefined
  return {
    ...(cpu === undefined ? {} : { cpu: [cpu] }),
    ...(libc === undefined ? {} : { libc: [libc] }),
    ...(os === undefined ? {} : { os: [os] }),
  }
}

function missingPackages(packages) {
  const missing = {}
  for (const [parent, entry] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const platform = describePlatform(name)
      const isExact = /^\d/.test(version)
      if (findInstalled(packages, parent, name)?.version !== undefined || platform === undefined || !isExact) continue
      missing[`node_modules/${name}`] = { version, ...(entry.dev ? { dev: true } : {}), optional: true, ...platform }
    }
  }
  return missing
}

const file = process.argv[2] ?? 'package-lock.json'
const lock = JSON.parse(readFileSync(file, 'utf8'))
const missing = missingPackages(lock.packages)
const all = Object.entries({ ...lock.packages, ...missing })
lock.packages = Object.fromEntries(all.sort(([left], [right]) => (left < right ? -1 : 1)))
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
console.log(`${Object.keys(missing).length} packages added`)
