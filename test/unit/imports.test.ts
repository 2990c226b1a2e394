import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { compareImports, readImportTable, readSources } from '../support/import-table.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const table = readImportTable(readFileSync(`${root}/docs/architecture.md`, 'utf8'))

describe('the import table of docs/architecture.md', () => {
  it('has all imports of the repository, and none that nobody needs', () => {
    const sources = readSources(root)
    expect(sources.size).toBeGreaterThan(400)
    expect(compareImports(sources, table)).toEqual([])
  })

  const planted = readImportTable(`
| Folder | May import |
| --- | --- |
| \`a/\` | \`b/\`, \`b/inner/\` (types), \`zod\` |
| \`b/\` | nothing |
| \`b/inner/\` | \`koa\` (types), \`node:*\` |
| \`b/own.ts\` | \`b/**\` |
`)
  const compare = (file: string, ...lines: string[]) =>
    compareImports(new Map([[file, lines.join('\n')]]), planted).filter((problem) => !problem.includes('take it out'))

  it.each([
    ['a/x.ts', "import { z } from 'zod/v4'"],
    ['a/x.ts', "import { y } from '../b/y.ts'"],
    ['a/x.ts', "import type { y } from '../b/y.ts'"],
    ['a/x.ts', "import { type y, type z } from '../b/inner/y.ts'"],
    ['a/x.ts', "import { y } from './deeper/y.ts'"],
    ['b/inner/x.ts', "import type Koa from 'koa'\nimport { join } from 'node:path'"],
    ['b/own.ts', "import { y } from './inner/y.ts'"],
  ])('allows %s to contain %s', (file, line) => {
    expect(compare(file, line)).toEqual([])
  })

  it.each([
    ['a/x.ts', "import { z } from '@zod/core'", '@zod/core'],
    ['a/x.ts', "import { y } from '../b/own.ts'", 'b/own.ts'],
    ['a/x.ts', "import { type y, z } from '../b/inner/y.ts'", 'b/inner/y.ts'],
    ['a/x.ts', "import {\n  type y,\n  z,\n} from '../b/inner/y.ts'", 'b/inner/y.ts'],
    ['b/x.ts', "import '../a/y.ts'", 'a/y.ts'],
    ['b/x.ts', "export * from '../a/y.ts'", 'a/y.ts'],
    ['b/x.ts', `const y = await ${'import'}('../a/y.ts')`, 'a/y.ts'],
    ['b/x.ts', `const file = new ${'URL'}('../a/y.ts', import.meta.url)`, 'a/y.ts'],
    ['b/x.ts', "import type { y } from '../a/y.ts'", 'the types of a/y.ts'],
    ['b/inner/x.ts', "import Koa from 'koa'", 'koa'],
  ])('forbids %s to contain %s', (file, line, what) => {
    expect(compare(file, line)).toEqual([
      expect.stringContaining(`${file} imports ${what}: not in the table of docs/architecture.md; `),
    ])
  })

  it('has a row for every file, and no entry that nobody needs', () => {
    const problems = compareImports(new Map([['c/x.ts', '']]), planted)
    expect(problems).toContain('c/x.ts is in no row of the import table of docs/architecture.md')
    expect(problems).toContain('a/ imports nothing of b/inner/ (types): take it out of docs/architecture.md')
  })
})
