import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'

const pages = globSync('{*.md,{client,docs,embed,examples,test}/**/*.md}', { exclude: ['**/node_modules/**'] }).sort()

/** Returns the text of a page without its blocks of code. */
const proseOf = (page: string): string => readFileSync(page, 'utf8').replace(/^(`{3,}).*?^\1$/gms, '')

/** Returns the anchors of a page, as GitHub makes them of headings. */
const anchorsOf = (page: string): string[] =>
  [...proseOf(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )

/** Maximum size of docs/architecture.md in bytes: what a maintainer can read at once. */
const ARCHITECTURE_BYTES = 25_000

describe('the documents', () => {
  it('are short: docs/architecture.md has at most 25 kB', () => {
    expect(readFileSync('docs/architecture.md').length).toBeLessThanOrEqual(ARCHITECTURE_BYTES)
  })

  it.each(pages)('have no link that leads nowhere: %s', (page) => {
    const links = proseOf(page).matchAll(/\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]*))?\)/g)
    const broken = [...links].filter(([, file, anchor]) => {
      const target = file ? path.join(path.dirname(page), file) : page
      return !existsSync(target) || (anchor !== undefined && !anchorsOf(target).includes(anchor))
    })
    expect(broken.map(([link]) => link)).toEqual([])
  })

  it('are found', () => {
    expect(pages).toEqual(expect.arrayContaining(['README.md', 'client/README.md', 'docs/guides/tools.md']))
  })
})
