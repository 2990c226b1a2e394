import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { carryOut, expectShown, readSections } from '../support/documentation.ts'
import { startEverythingServer } from '../support/everything-server.ts'
import { startService, type TestService } from '../support/service.ts'

/** Sections whose commands need what is not here. */
const LEFT_OUT: Record<string, string> = {
  'Adding a provider': 'an account at a provider',
  'Who may call': 'a service with sign-in: test/service/authentication-page has it',
}
const LIMIT_MS = 300_000

const guides = (await readdir('docs/guides')).filter((file) => file.endsWith('.md'))
const pages = await Promise.all(
  ['README.md', ...guides.map((file) => `docs/guides/${file}`)].map(async (page) => ({
    page,
    sections: readSections(await readFile(page, 'utf8')),
  })),
)
const tried = pages.map(({ page, sections }) => ({
  page,
  sections: sections.filter(({ title }) => !(title in LEFT_OUT)),
}))

let outputs: Map<string, Map<string, string>>
let folder: string
let server: Awaited<ReturnType<typeof startEverythingServer>>
let service: TestService
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'readme-'))
  await cp('docs', path.join(folder, 'docs'), { recursive: true })
  server = await startEverythingServer()
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
  const others: [string, string][] = [
    ['localhost:9300', new URL(service.url).host],
    ['http://127.0.0.1:3001/mcp', server.url],
    ['127.0.0.1:9303', service.config.TEMPORAL_ADDRESS],
    ['"127.0.0.1:3001"', `"${new URL(server.url).host}"`],
    // A schedule that runs each minute takes one.
    ['"* * * * *', '"$((10#$(date -d "+6 sec" +%S))) * * * * *'],
    ['/tmp/', `${folder}/`],
    // After /tmp/, below which this repository may lie.
    ['../../examples/', `${path.resolve('examples')}/`],
    // All pages run at once, on cores that other tests use.
    ['?wait=30', '?wait=120'],
    ['?wait=60', '?wait=120'],
  ]
  outputs = new Map(
    await Promise.all(
      tried.map(async ({ page, sections }) => {
        const output = await carryOut(sections, path.join(folder, path.dirname(page)), others)
        return [page, output] as const
      }),
    ),
  )
}, LIMIT_MS)
afterAll(async () => {
  await service.stop()
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

describe('the README and the guides', () => {
  it('name no section as left out that they do not have', () => {
    const titles = pages.flatMap(({ sections }) => sections.map(({ title }) => title))
    expect(titles).toEqual(expect.arrayContaining(Object.keys(LEFT_OUT)))
    expect(tried.flatMap(({ sections }) => sections.flatMap(({ commands }) => commands)).length).toBeGreaterThan(80)
  })

  it('are short: the README has at most 12 kB', async () => {
    expect((await readFile('README.md')).length).toBeLessThanOrEqual(12 * 1024)
  })

  const rows = tried.flatMap(({ page, sections }) => sections.map((section) => [page, section.title, section] as const))
  it.each(rows)('show what their commands do when they are copied: %s, %s', (page, title, section) =>
    expectShown(section, outputs.get(page)?.get(title)),
  )
})
