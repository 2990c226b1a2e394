import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import sharp from 'sharp'
import { carryOut, expectShown, readSections } from '../support/documentation.ts'
import { startEverythingServer } from '../support/everything-server.ts'
import { startService, type TestService } from '../support/service.ts'

/** Sections whose commands need what is not here. */
const LEFT_OUT: Record<string, string> = {
  'A provider': 'an account at a provider',
  'Who may call': 'a service with sign-in: test/service/authentication-page has it',
  Deployment: 'Docker',
}
/** Commands that have been carried out already. */
const STARTS = /^(PORT=3001 npx mcp-server-everything|ALLOWED_PRIVATE_HOSTS=127.0.0.1:3001 npm start)/
const LIMIT_MS = 90_000

const sections = readSections(await readFile('README.md', 'utf8'))
const tried = sections
  .filter(({ title }) => !(title in LEFT_OUT))
  .map(({ title, commands }) => ({ title, commands: commands.filter(({ text }) => !STARTS.test(text)) }))

let outputs: Map<string, string>
let folder: string
let server: Awaited<ReturnType<typeof startEverythingServer>>
let service: TestService
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'readme-'))
  server = await startEverythingServer()
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
  const cat = sharp({ create: { width: 64, height: 48, channels: 3, background: 'orange' } })
  await writeFile(path.join(folder, 'cat.jpg'), await cat.jpeg().toBuffer())
  outputs = await carryOut(tried, folder, [
    ['localhost:9300', new URL(service.url).host],
    ['http://127.0.0.1:3001/mcp', server.url],
    // A schedule that runs each minute takes one.
    ['"* * * * *', '"$((10#$(date -d "+6 sec" +%S))) * * * * *'],
    ['sleep 60', 'sleep 12'],
  ])
}, LIMIT_MS)
afterAll(async () => {
  await service.stop()
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

describe('the README', () => {
  it('names no section as left out that it does not have', () => {
    const titles = sections.map(({ title }) => title)
    expect(titles).toEqual(expect.arrayContaining(Object.keys(LEFT_OUT)))
    expect(tried.length).toBeGreaterThan(8)
  })

  it.each(tried.map((section) => [section.title, section] as const))(
    'shows what its commands do when they are copied: %s',
    (title, section) => expectShown(section, outputs.get(title)),
  )
})
