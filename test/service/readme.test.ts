import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import sharp from 'sharp'
import { startEverythingServer } from '../support/everything-server.ts'
import { startService, type TestService } from '../support/service.ts'

/** Sections whose commands need what is not here. */
const LEFT_OUT: Record<string, string> = {
  'A provider': 'an account at a provider',
  'Who may call': 'a service with sign-in',
  Deployment: 'Docker',
}
/** Commands that have been carried out already. */
const STARTS = /^(PORT=3001 npx mcp-server-everything|ALLOW_PRIVATE_NETWORK=true npm start)/
const LIMIT_MS = 60_000
const END_OF_COMMAND = '--- end of command'

/** A command of the page, and the lines that it shows below it. */
type Command = { text: string; shown: string[] }
type Section = { title: string; commands: Command[] }

/** Reads the commands after `$ ` in a page's console blocks, by section. */
function readSections(page: string): Section[] {
  return page.split(/^#+ (?=\S)/m).flatMap((section) => {
    const [title = ''] = section.split('\n')
    const blocks = [...section.matchAll(/^(`{3,})console\n(.*?)^\1$/gms)].map(([, , block = '']) => block)
    return blocks.length === 0 ? [] : [{ title, commands: blocks.flatMap(readCommands) }]
  })
}

function readCommands(block: string): Command[] {
  const commands: Command[] = []
  let isOpen = false
  let end: string | undefined
  for (const line of block.split('\n')) {
    const current = commands.at(-1)
    if (!isOpen && line.startsWith('$ ')) commands.push({ text: line.slice(2), shown: [] })
    else if (isOpen) Object.assign(current ?? {}, { text: `${current?.text}\n${line}` })
    else if (line !== '') current?.shown.push(line)
    const text = commands.at(-1)?.text ?? ''
    end = /<<'?(\w+)'?/.exec(text)?.[1]
    isOpen = end === undefined ? text.endsWith('\\') || isQuoteOpen(text) : !text.endsWith(`\n${end}`)
  }
  return commands
}

/** Tells whether a quoted text goes on in the next line. */
function isQuoteOpen(text: string): boolean {
  let open = ''
  for (const [quote] of text.matchAll(/\\.|['"]/g)) {
    if (quote.startsWith('\\')) continue
    if (open === '') open = quote
    else if (open === quote) open = ''
  }
  return open !== ''
}

/** Returns a pattern for a shown line, in which `…`, ids, times and durations may be others. */
const patternOf = (line: string): RegExp =>
  new RegExp(
    line
      .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replace(/(_)?[0-9a-f]{32}/g, '$1[0-9a-f]{32}')
      .replace(/[0-9a-f]{8}-(?=…)/g, '[0-9a-f]{8}-')
      .replace(/\d{4}-\d\d-\d\dT[\d:]+\\\.\d{3}Z/g, '[-\\d]+T[:\\d]+\\.\\d{3}Z')
      .replace(/(duration_ms":)\d+/g, '$1\\d+')
      .replaceAll('…', '[^\\n]*'),
  )

const run = (script: string, cwd: string): Promise<string> =>
  new Promise((resolve) => {
    execFile('bash', ['-c', script], { cwd, timeout: LIMIT_MS }, (_error, stdout, stderr) => resolve(stdout + stderr))
  })

const sections = readSections(await readFile('README.md', 'utf8'))
const tried = sections.filter(({ title }) => !(title in LEFT_OUT))

const outputs = new Map<string, string>()
let folder: string
let server: Awaited<ReturnType<typeof startEverythingServer>>
let service: TestService
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'readme-'))
  server = await startEverythingServer()
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
  // What is other here than for a reader. A schedule that runs each minute takes one.
  const others: [string, string][] = [
    ['localhost:9300', new URL(service.url).host],
    ['http://127.0.0.1:3001/mcp', server.url],
    ['"* * * * *', '"$((10#$(date -d "+6 sec" +%S))) * * * * *'],
    ['sleep 60', 'sleep 12'],
  ]
  const cat = sharp({ create: { width: 64, height: 48, channels: 3, background: 'orange' } })
  await writeFile(path.join(folder, 'cat.jpg'), await cat.jpeg().toBuffer())
  const commands = tried.flatMap(({ title, commands }) =>
    commands.flatMap(({ text }) => (STARTS.test(text) ? [] : { title, text })),
  )
  const script = commands.map(({ text }) => `${text}\necho; echo '${END_OF_COMMAND}' $?`).join('\n')
  // Streams in the background last until then.
  const here = others.reduce((text, [there, here]) => text.replaceAll(there, here), script)
  const told = await run(`trap 'kill $(jobs -p)' EXIT\n${here}`, folder)
  for (const [index, output] of told.split(END_OF_COMMAND).entries()) {
    const title = commands[index]?.title ?? 'after the last command'
    outputs.set(title, (outputs.get(title) ?? '') + output)
  }
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

  it.each(tried.map(({ title, commands }) => [title, commands] as const))(
    'shows what its commands do when they are copied: %s',
    (title, commands) => {
      // A stream in the background may go on in the next section.
      const next = tried[tried.findIndex((section) => section.title === title) + 1]?.title ?? ''
      const output = `${outputs.get(title)}${outputs.get(next)}`
      for (const line of commands.flatMap(({ shown }) => shown).filter((line) => line !== '…'))
        expect(output).toMatch(patternOf(line))
    },
  )
})
