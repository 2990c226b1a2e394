import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** Import table of docs/architecture.md: the imports allowed for each folder or file. */
export type ImportTable = Map<string, Allowed[]>
/**
 * Allowed import. `what` is a row, `folder/**` for all rows inside a folder, or a package. `node:*` covers all Node
 * modules.
 */
type Allowed = { what: string; kind: Kind }
type Kind = 'value' | 'type'
/** Import of a source file. `to` is a file of this repository or a package. */
type Import = { to: string; kind: Kind }
export type Sources = Map<string, string>

/** Reads all sources of the repository, keyed by path. */
export function readSources(root: string): Sources {
  const exclude = ['node_modules/**', 'prisma/generated/**', 'client/src/generated/**', '**/dist/**', '.data/**']
  const files = globSync('**/*.{ts,mjs}', { cwd: root, exclude })
  return new Map(files.map((file) => [file, readFileSync(path.join(root, file), 'utf8')]))
}

/** Reads the table with the heading `| Folder | May import |`. "(types)" after a name allows only `import type`. */
export function readImportTable(markdown: string): ImportTable {
  const [, table = ''] = markdown.split(/^\| Folder +\| May import +\|\n.*\n/m)
  const lines = table.split('\n')
  const rows = lines.slice(
    0,
    lines.findIndex((line) => !line.startsWith('|')),
  )
  return new Map(
    rows.map((row) => {
      const [, name = '', ...cells] = row.split('|')
      const allowed = [...cells.join().matchAll(/`([^`]+)`( \(types\))?/g)]
      return [
        /`(.+)`/.exec(name)?.[1] ?? '',
        allowed.map(([, what = '', mark]) => ({ what, kind: mark === undefined ? 'value' : 'type' })),
      ]
    }),
  )
}

/** Matches static and dynamic imports, re-exports, and files named by `new URL`, such as a thread's entry file. */
const IMPORTS =
  /^(?:import|export)\s+(type\s)?([^'";]*?)\s*\bfrom\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)|\bnew URL\('(\.[^']+\.(?:ts|mjs))', import\.meta\.url\)/gm

function importsOf(file: string, text: string): Import[] {
  return [...text.matchAll(IMPORTS)].map(([, type, names = '', ...specifiers]) => {
    const specifier = specifiers.find((one) => one !== undefined) ?? ''
    const to = specifier.startsWith('.') ? path.join(path.dirname(file), specifier) : packageOf(specifier)
    return { to, kind: type !== undefined || hasOnlyTypes(names) ? 'type' : 'value' }
  })
}

const hasOnlyTypes = (names: string): boolean => /^\{(\s*type [^,}]+,?)+\s*\}$/.test(names)

const packageOf = (specifier: string): string =>
  specifier.startsWith('node:') ? specifier : specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')

/** Returns the row of a file: its own, or that of the nearest folder. */
function rowOf(table: ImportTable, file: string): string | undefined {
  if (table.has(file)) return file
  for (let folder = path.dirname(file); folder !== '.'; folder = path.dirname(folder)) {
    if (table.has(`${folder}/`)) return `${folder}/`
  }
  return undefined
}

const isFile = (to: string): boolean => /\.(ts|mjs|cjs)$/.test(to)

function covers({ what, kind }: Allowed, wanted: Import, row: string | undefined): boolean {
  if (kind === 'type' && wanted.kind === 'value') return false
  if (what === 'node:*') return wanted.to.startsWith('node:')
  if (what.endsWith('/**')) return row?.startsWith(what.slice(0, -2)) === true
  return what === (row ?? wanted.to)
}

/** Returns a sentence for each import that the table does not allow, and for each entry that no file needs. */
export function compareImports(sources: Sources, table: ImportTable): string[] {
  const unused = new Set([...table.values()].flat())
  const problems: string[] = []
  for (const [file, text] of sources) {
    const own = rowOf(table, file)
    if (own === undefined) problems.push(`${file} is in no row of the import table of docs/architecture.md`)
    for (const wanted of importsOf(file, text)) {
      const row = isFile(wanted.to) ? rowOf(table, wanted.to) : undefined
      if (own === undefined || row === own) continue
      const allowing = table.get(own)?.filter((allowed) => covers(allowed, wanted, row)) ?? []
      for (const allowed of allowing) unused.delete(allowed)
      if (allowing.length === 0) problems.push(toSentence(file, wanted, own, table.get(own) ?? []))
    }
  }
  const rows = [...table].flatMap(([row, allowed]) => allowed.map((one) => ({ row, one })))
  for (const { row, one } of rows) {
    if (unused.has(one)) problems.push(`${row} imports nothing of ${nameOf(one)}: take it out of docs/architecture.md`)
  }
  return problems
}

const nameOf = ({ what, kind }: Allowed): string => (kind === 'type' ? `${what} (types)` : what)

function toSentence(file: string, { to, kind }: Import, row: string, allowed: Allowed[]): string {
  const what = kind === 'type' ? `the types of ${to}` : to
  return `${file} imports ${what}: not in the table of docs/architecture.md; ${row} may import ${allowed.map(nameOf).join(', ') || 'nothing'}`
}
