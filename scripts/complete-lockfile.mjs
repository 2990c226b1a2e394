import fs from 'node:fs'

const file = process.argv[2]
const lock = JSON.parse(fs.readFileSync(file, 'utf8'))
const p = lock.packages
const OS = ['android', 'darwin', 'win32', 'linux', 'freebsd', 'openharmony', 'aix', 'sunos'],
  CPU = ['arm64', 'x64', 'ia32', 'ppc64', 's390x', 'riscv64', 'loong64', 'arm', 'wasm32']
let n = 0
for (const [parent, e] of Object.entries({ ...p }))
  for (const [name, spec] of Object.entries(e.optionalDependencies ?? {})) {
    let at = parent,
      found
    for (;;) {
      const k = (at ? at + '/' : '') + 'node_modules/' + name
      if (p[k]) {
        found = k
        break
      }
      if (!at) break
      const i = at.lastIndexOf('/node_modules/')
      at = i < 0 ? '' : at.slice(0, i)
    }
    if (found && p[found].version) continue
    const t = name.split(/[-/]/)
    const os = t.find((x) => OS.includes(x))
    const cpu = t.find((x) => CPU.includes(x))
    if (!/^\d/.test(spec) || (!os && !cpu)) {
      console.log('skip', name, spec)
      continue
    }
    const lib = /musl/.test(name) ? ['musl'] : /gnu/.test(name) && os === 'linux' ? ['glibc'] : undefined
    p['node_modules/' + name] = {
      version: spec,
      ...(cpu && { cpu: [cpu] }),
      ...(e.dev && { dev: true }),
      ...(lib && { libc: lib }),
      optional: true,
      ...(os && { os: [os] }),
    }
    n++
  }
lock.packages = Object.fromEntries(Object.entries(p).sort(([a], [b]) => (a < b ? -1 : 1)))
fs.writeFileSync(file, JSON.stringify(lock, null, 2) + '\n')
console.log('added', n)
