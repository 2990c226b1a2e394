import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import webpack from 'webpack'
import { startBrowser } from '../../dev/chromium.ts'
import { describePages } from '../support/chromium.ts'
import { createLab } from '../support/lab.ts'
import { startService, type TestService } from '../support/service.ts'
import { readTurns, sessionOf } from './ai/checks.ts'
import { slow } from './ai/scenario.ts'
import { createAgent, GUARDED } from './ai/stage.ts'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const BUNDLES = path.resolve('.data', 'faces-page')

const LONG = slow(3, 12)
const STEPS = [
  { thinking: 'Let me think.', ...slow(1, 40) },
  { text: 'Which colour?', tool_calls: [{ name: 'ask_user', arguments: {} }] },
  { text: 'Blue, then.', tool_calls: [{ name: GUARDED, arguments: { text: 'precious' } }] },
  { text: 'It has run.' },
  LONG,
  slow(20, 12),
]

/** Bundles the page as an application's build does. */
async function bundle(): Promise<Buffer> {
  const compiler = webpack({
    mode: 'production',
    context: FOLDER,
    entry: './page/chat.js',
    experiments: { outputModule: true },
    output: { path: BUNDLES, filename: 'chat.js', library: { type: 'module' } },
    optimization: { minimize: false },
  })
  const stats = await promisify(compiler.run.bind(compiler))()
  if (stats === undefined || stats.hasErrors()) throw new Error(`the page cannot be bundled:\n${stats}`)
  return readFile(path.join(BUNDLES, 'chat.js'))
}

/** Serves the page at an origin of its own. */
async function servePage(script: Buffer): Promise<{ origin: string; close(): void }> {
  const server = createServer(({ url }, answer) => {
    const isScript = url === '/chat.js'
    answer.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html')
    answer.end(
      isScript ? script : '<!doctype html><meta charset=utf-8><body><script type=module src=/chat.js></script>',
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

describePages('a page with useChat of @ai-sdk/react', () => {
  let service: TestService
  let browser: Browser
  let site: { origin: string; close(): void }
  beforeAll(async () => {
    site = await servePage(await bundle())
    const environment = { CORS_ALLOWED_ORIGINS: site.origin }
    service = await startService({ environment, capabilities: [createLab().capability] })
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await service?.stop()
    site?.close()
  })

  const isDone = (page: Page) => page.locator('output', { hasText: /^ready$/ }).waitFor()
  const textsOf = (page: Page) => page.locator('article .text').allTextContents()

  it('converses, runs its tool, asks for approval, is loaded anew in mid-answer, and stops', async () => {
    const agentId = await createAgent(service.url, STEPS)
    const query = new URLSearchParams({
      api: `${service.url}/v1/faces/ai-sdk/7/${agentId}`,
      id: randomUUID(),
      key: 'none',
    })
    const page = await browser.newPage()
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(String(error)))
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
    const say = async (text: string) => {
      await page.locator('input').fill(text)
      await page.locator('input').press('Enter')
    }
    await page.goto(`${site.origin}/?${query}`)
    await say('Hello')
    await page.getByText(slow(1).text.trim()).waitFor()
    await isDone(page)
    expect(await page.locator('.reasoning').allTextContents()).toEqual(['Let me think.'])

    await say('Paint')
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('It has run.').waitFor()
    await isDone(page)
    expect(await page.locator('.tool').allTextContents()).toEqual([
      'tool-ask_user output-available',
      `tool-${GUARDED} output-available`,
    ])

    await say('Talk')
    await page.getByText('The quick brown fox').nth(1).waitFor()
    await page.reload()
    await page.getByText(LONG.text.trim()).waitFor()
    await isDone(page)
    const turns = await readTurns(service.url, await sessionOf(service.url, agentId))
    expect(turns.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed'])
    const shown = ['Hello', slow(1).text, 'Paint', 'Which colour?', 'Blue, then.', 'It has run.', 'Talk', LONG.text]
    expect(await textsOf(page)).toEqual(shown)

    await say('Talk on')
    await page.getByText('The quick brown fox').nth(2).waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await isDone(page)
    await page.reload()
    await page.getByText('Talk on').waitFor()
    const last = (await readTurns(service.url, await sessionOf(service.url, agentId))).at(-1)
    expect(last?.status).toBe('cancelled')
    const written = last?.answers[0].content[0].text
    expect(await textsOf(page)).toEqual([...shown, 'Talk on', written])
    expect(complaints).toEqual([])
  })
})
