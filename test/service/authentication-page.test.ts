import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { FULL_MODE } from '../support/auth.ts'
import { carryOut, expectShown, readSections } from '../support/documentation.ts'
import { startService, type TestService } from '../support/service.ts'

const LIMIT_MS = 60_000
const page = readSections(await readFile('docs/authentication.md', 'utf8'))
const guide = readSections(await readFile('docs/guides/who-may-call.md', 'utf8'))
// Streams show no command, and a sign-in at a provider needs one.
const tried = [...guide, ...page.filter(({ title }) => !['Identity providers', 'Streams'].includes(title))]

let outputs: Map<string, string>
let folder: string
let service: TestService
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'authentication-'))
  const provider = { AUTH_IDPA_CLIENT_ID: 'x', AUTH_IDPA_CLIENT_SECRET: 'y', AUTH_IDPA_ISSUER: 'http://127.0.0.1:9' }
  service = await startService({ environment: { ...FULL_MODE, ...provider } })
  outputs = await carryOut(tried, folder, [['localhost:9300', new URL(service.url).host]])
}, LIMIT_MS)
afterAll(async () => {
  await service.stop()
  await rm(folder, { recursive: true, force: true })
})

describe('docs/authentication.md and its guide', () => {
  it('have commands', () => {
    expect([guide.map(({ commands }) => commands.length), page.length]).toEqual([[4], 7])
  })

  it.each(tried.map((section) => [section.title, section] as const))(
    'show what their commands do when they are copied: %s',
    (title, section) => expectShown(section, outputs.get(title)),
  )
})
