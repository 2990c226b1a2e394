import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress } from 'node:zlib'
import type { Page } from 'playwright-core'
import { ADMIN, ADMIN_MODE, createApiKey, logInUser } from '../support/auth.ts'
import { describePages } from '../support/chromium.ts'
import { type ConsolePage, closeBrowser, type Look, looks, openPage } from '../support/console.ts'
import { type EmbedSite, startEmbedSite } from '../support/embed-page.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import {
  addressOf,
  call,
  createScriptedSession,
  type Json,
  modelId,
  type Target,
  unknownId,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { paste } from '../support/paste.ts'
import { startService, type TestService, withService } from '../support/service.ts'
import { clientTool, guardedTool, listTurns, MUTE, post } from '../support/turns.ts'

/** Largest size of the element with the client, compressed with brotli, in bytes. */
const MAX_BYTES = 30_000

let site: EmbedSite
let service: TestService
beforeAll(async () => {
  site = await startEmbedSite()
  const environment = { CORS_ALLOWED_ORIGINS: site.origin }
  service = await startService({ environment, capabilities: [createLab().capability] })
})
const opened: ConsolePage[] = []
/** Closes a page before the service that it uses ends. */
async function closeLast(): Promise<void> {
  const last = opened.pop()
  last?.expectNoComplaints()
  await last?.close()
}
afterEach(async () => {
  while (opened.length > 0) await closeLast()
})
afterAll(async () => {
  await closeBrowser()
  await service.stop()
  await site.close()
})

/** Creates an agent that plays a script. */
async function createAgent(steps: object[], fields: object = {}, target: Target = service.url): Promise<string> {
  const session = await createScriptedSession(target, steps, fields)
  return (await call(target, 'GET', `/v1/sessions/${session}`)).body.agent_id
}

type Options = { url?: string; look?: Look; session?: string }

async function openChat(agent: string, { url = service.url, look, session }: Options = {}): Promise<ConsolePage> {
  const address = site.pageOf(url, { agent, heading: 'Help', ...(session && { session }) })
  const shown = await openPage(address, look ? { look } : {})
  opened.push(shown)
  return shown
}

const log = (page: Page) => page.getByRole('log', { name: 'Conversation' })
const textOf = async (page: Page): Promise<string> => (await log(page).textContent()) ?? ''
const box = (page: Page) => page.getByLabel('Message', { exact: true })
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const isStill = (page: Page) => page.getByText('Working…').waitFor({ state: 'detached' })

async function say(page: Page, text: string): Promise<void> {
  await box(page).fill(text)
  await page.keyboard.press('Enter')
}

/** Returns the events that the page has heard. */
const heard = (page: Page): Promise<Json[]> => page.evaluate('heard.map(({ type, id, text }) => ({ type, id, text }))')

async function sessionOf(page: Page): Promise<string> {
  return waitFor(async () => (await heard(page)).findLast(({ type }) => type === 'session')?.id, 'the session')
}

describePages('the element <agent-chat>, in a page of another origin with a strict policy', () => {
  it.each(looks('wide dark', 'narrow light'))(
    'shows thinking, tools and text as they come, in a %s window',
    async (look) => {
      const steps = [
        { thinking: 'I need a tool.', text: 'One moment.', tool_calls: [{ name: 'add', arguments: { a: 20, b: 22 } }] },
        { text: `It is **42**, as \`add\` says. ${'And more. '.repeat(30)}`, tokens_per_second: 20 },
      ]
      const shown = await openChat(await createAgent(steps, { capabilities: [{ ref: 'test_math' }] }), { look })
      const { page } = shown
      await shown.expectAccessible()
      await say(page, 'What is 20 + 22?')
      await page.locator('strong', { hasText: '42' }).waitFor()
      await page.getByText('Working…').waitFor()
      await isStill(page)
      await page.locator('summary', { hasText: 'Thinking' }).click()
      await page.getByText('I need a tool.').waitFor()
      await page.locator('summary', { hasText: 'done' }).click()
      await page.getByText('"a": 20').waitFor()
      await page.getByText('"result": 42').waitFor()
      await shown.expectAccessible()
      expect((await textOf(page)).split('And more.')).toHaveLength(31)
      expect(await heard(page)).toEqual([
        { type: 'session', id: await sessionOf(page) },
        { type: 'answer', text: expect.stringContaining('It is **42**') },
      ])
      await press(page, 'New chat')
      expect(await textOf(page)).toBe('')
      expect(await page.evaluate('document.activeElement.shadowRoot.activeElement.localName')).toBe('textarea')
      await say(page, 'Again')
      await page.getByText('One moment.').waitFor()
      expect((await heard(page)).filter(({ type }) => type === 'session')).toHaveLength(2)
    },
  )

  it('asks for approval, and again after a reload', async () => {
    const calls = ['add', 'multiply'].map((name) => ({ id: name, name, arguments: { a: 6, b: 7 } }))
    const agent = await createAgent([{ text: 'May I?', tool_calls: calls }, { text: 'Calculated.' }], {
      capabilities: [{ ref: 'test_math' }],
      tools: calls.map(({ name }) => guardedTool(name)),
    })
    const shown = await openChat(agent)
    const { page } = shown
    await say(page, 'Calculate.')
    await page.getByText('Waiting for you.').waitFor()
    const approval = (name: string) => page.getByRole('group', { name: `Approval of ${name}`, exact: true })
    await approval('multiply').getByText('"a": 6').waitFor()
    await shown.expectAccessible()
    await page.reload()
    await approval('multiply').getByRole('button', { name: 'Deny' }).click()
    await approval('multiply').waitFor({ state: 'detached' })
    await approval('add').getByRole('button', { name: 'Approve' }).click()
    await page.getByText('Calculated.').waitFor()
    expect((await textOf(page)).split('May I?')).toHaveLength(2)
    expect(await page.evaluate('document.activeElement.shadowRoot.activeElement.localName')).toBe('textarea')
    const events = await waitUntilIdle(service.url, await sessionOf(page))
    const results = events.filter(({ type }) => type === 'tool.completed')
    expect(Object.fromEntries(results.map(({ data }) => [data.tool_call_id, data.status]))).toEqual({
      add: 'success',
      multiply: 'error',
    })
  })

  it('answers and declines the questions of a tool', async () => {
    const calls = [{ id: 'a', name: 'elicit', arguments: { times: 2 } }]
    const agent = await createAgent([{ tool_calls: calls }, { text: 'Done.' }], { capabilities: [{ ref: 'lab' }] })
    const shown = await openChat(agent, { look: 'narrow dark' })
    const { page } = shown
    await say(page, 'Ask me.')
    await page.getByLabel('name', { exact: true }).fill('Ada')
    await shown.expectAccessible()
    await press(page, 'Answer')
    await page.getByRole('button', { name: 'Decline' }).nth(1).click()
    await page.getByRole('button', { name: 'Decline' }).nth(1).waitFor({ state: 'detached' })
    await press(page, 'Decline')
    await page.getByText('Done.').waitFor()
    const events = await waitUntilIdle(service.url, await sessionOf(page))
    const answers = events.filter(({ type, data }) => type === 'tool.completed' && data.tool_name === 'mcp_elicitation')
    expect(answers.map(({ data }) => JSON.parse(data.result[0].text).action)).toEqual(['accept', 'decline', 'decline'])
  })

  it('runs the tools of the page', async () => {
    const tool_calls = [{ name: 'ask_page', arguments: { question: 'Which colour?' } }]
    const agent = await createAgent([{ tool_calls }, { text: 'Painted.' }], { tools: [clientTool('ask_page')] })
    const { page } = await openChat(agent)
    await page.evaluate(`document.querySelector('agent-chat').send('Paint it.')`)
    await page.getByText('Painted.').waitFor()
    await page.locator('summary', { hasText: 'ask_page' }).click()
    await page.getByText('The page was asked: Which colour?').waitFor()
  })

  it('sends images, and shows them in messages and results', async () => {
    const echo = await modelId(service.url, 'llmsim-echo')
    const { body } = await call(service.url, 'POST', '/v1/agents', {
      name: 'Echo',
      system_prompt: 'Help.',
      default_model_id: echo,
    })
    const shown = await openChat(body.id)
    const { page } = shown
    const picture = await page.screenshot({ clip: { x: 0, y: 0, width: 40, height: 30 } })
    await page.locator('input[type=file]').setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: picture })
    await box(page).evaluate(paste, picture.toString('base64'))
    await page.getByRole('listitem').filter({ hasText: 'pasted.png' }).waitFor()
    await press(page, 'Remove pasted.png')
    await page.getByText('uploading…').waitFor({ state: 'detached' })
    await say(page, 'What is it?')
    await page.getByText('[image image/png 40x30]').waitFor()
    await page.getByRole('img', { name: 'a.png' }).waitFor()
    await shown.expectAccessible()
    await page.reload()
    await page.getByRole('img', { name: 'a.png' }).waitFor()
    const tool_calls = [{ name: 'picture', arguments: {} }]
    const agent = await createAgent([{ tool_calls }, { text: 'Seen.' }], { capabilities: [{ ref: 'lab' }] })
    const other = await openChat(agent)
    await say(other.page, 'Show it.')
    await other.page.getByText('Seen.').waitFor()
    expect(await log(other.page).locator('img').count()).toBe(1)
  })

  it('queues messages, takes them back, and stops', async () => {
    const { page } = await openChat(await createAgent([MUTE, MUTE, { text: 'Third.' }]))
    await say(page, 'First')
    await page.getByText('Working…').waitFor()
    await say(page, 'Second')
    await page.getByText('Queued.').waitFor()
    await press(page, 'Remove')
    await page.getByText('Queued.').waitFor({ state: 'detached' })
    await say(page, 'Third')
    await page.getByText('Queued.').waitFor()
    await press(page, 'Stop')
    await page.getByText('Stopped.').nth(1).waitFor()
    await page.getByText('Working…').waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('Stopped.').nth(2).waitFor()
    const turns = await listTurns(service.url, await sessionOf(page))
    expect(turns.map(({ status }) => status)).toEqual(['cancelled', 'cancelled', 'cancelled'])
    expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0)
  })

  it('says why there is no answer, and tries again', async () => {
    const error = { status: 400, message: 'the prompt is too long' }
    const shown = await openChat(await createAgent([{ error }, { text: 'Better.' }]))
    const { page } = shown
    await say(page, 'Go')
    await page.getByRole('alert').getByText('the prompt is too long').waitFor()
    await shown.expectAccessible()
    await page.reload()
    await page.getByRole('alert').getByText('the prompt is too long').waitFor()
    await press(page, 'Try again')
    await page.getByText('Better.').waitFor()
    await say((await openChat('agent_1')).page, 'Hello')
    await opened
      .at(-1)
      ?.page.getByRole('alert')
      .getByText(/agent_id/)
      .waitFor()
  })

  it('begins a new chat when its session was deleted, while it was open or before', async () => {
    const { page } = await openChat(await createAgent([{ text: 'Hello.' }]))
    await say(page, 'Hi')
    await page.getByText('Hello.').waitFor()
    await isStill(page)
    const first = await sessionOf(page)
    await call(service.url, 'DELETE', `/v1/sessions/${first}`)
    await say(page, 'Hi again')
    await page.getByRole('alert').getByText('Session not found').waitFor()
    await press(page, 'Try again')
    await page.getByText('Hello.').nth(1).waitFor()
    const second = await sessionOf(page)
    expect(second).not.toBe(first)
    await call(service.url, 'DELETE', `/v1/sessions/${second}`)
    await page.reload()
    await say(page, 'And again')
    await page.getByText('Hello.').waitFor()
    await waitFor(async () => (await textOf(page)) === 'And againHello.', 'the end of the turn')
  })

  it('keeps the order when a message is sent before the conversation is loaded', async () => {
    const { page } = await openChat(await createAgent([{ text: 'First.' }, { text: 'Second.' }]))
    await say(page, 'One')
    await page.getByText('First.').waitFor()
    await page.route('**/turns?*', (route) => route.abort())
    await page.reload()
    await page.getByRole('alert').getByText('The service cannot be reached.').waitFor()
    await page.unroute('**/turns?*')
    const isLoaded = Promise.withResolvers<void>()
    await page.route('**/turns?*', (route) => isLoaded.promise.then(() => route.continue()))
    await say(page, 'Two')
    await page.getByText('Working…').waitFor()
    expect(await textOf(page)).not.toContain('One')
    isLoaded.resolve()
    await page.getByText('Second.').waitFor()
    await isStill(page)
    expect(await textOf(page)).toBe('OneFirst.TwoSecond.')
  })

  it('continues the session of its attribute, and says if there is none', async () => {
    const session = await createScriptedSession(service.url, [{ text: 'First.' }, { text: 'Second.' }])
    await post(service.url, session, 'One')
    await waitUntilIdle(service.url, session)
    const { page } = await openChat('', { session })
    await page.getByText('First.').waitFor()
    await say(page, 'Two')
    await page.getByText('Second.').waitFor()
    expect(await sessionOf(page)).toBe(session)
    const other = await openChat('', { session: unknownId('session') })
    await say(other.page, 'Hello?')
    await other.page.getByRole('alert').getByText('Session not found').nth(1).waitFor()
  })

  it('goes on after a reload in mid-answer, without doubled text', async () => {
    // For longer than a page takes to load on a busy machine.
    const text = 'word '.repeat(150)
    const { page } = await openChat(await createAgent([{ text: 'Before.' }, { text, tokens_per_second: 30 }]))
    await say(page, 'One')
    await page.getByText('Before.').waitFor()
    await say(page, 'Two')
    await page.getByText('word word').waitFor()
    await page.reload()
    await page.getByText('word word').waitFor()
    await page.getByText('Working…').waitFor()
    await isStill(page)
    expect(await textOf(page)).toBe(`OneBefore.Two${text.trim()}`)
  })

  it('posts a message once if the page is left before it was accepted', async () => {
    const { page } = await openChat(await createAgent([{ text: 'First.' }, { text: 'Second.' }]))
    await say(page, 'One')
    await page.getByText('First.').waitFor()
    await page.route('**/messages', (route) => (route.request().method() === 'POST' ? undefined : route.continue()))
    await say(page, 'Two')
    await page.getByText('Working…').waitFor()
    await page.reload()
    await page.unroute('**/messages')
    await page.reload()
    await page.getByText('Second.').waitFor()
    expect(await listTurns(service.url, await sessionOf(page))).toHaveLength(2)
  })

  it('posts a message only to the session that it was written in', async () => {
    const agent = await createAgent([{ text: 'First.' }, { text: 'Second.' }])
    const { page } = await openChat(agent)
    await say(page, 'One')
    await page.getByText('First.').waitFor()
    const first = await sessionOf(page)
    const { id: other } = (await call(service.url, 'POST', '/v1/sessions', { agent_id: agent })).body
    const show = async (id: string) => {
      await page.evaluate(`document.querySelector('agent-chat').setAttribute('session', '${id}')`)
      await waitFor(async () => (await sessionOf(page)) === id, `${id} to be shown`)
    }
    await page.route('**/messages', (route) => (route.request().method() === 'POST' ? undefined : route.continue()))
    await say(page, 'Two')
    await page.getByText('Working…').waitFor()
    await page.unroute('**/messages')
    await show(other)
    await show(first)
    await page.getByText('Second.').waitFor()
    expect(await listTurns(service.url, first)).toHaveLength(2)
    expect(await listTurns(service.url, other)).toEqual([])
  })

  it('goes on by itself after cuts of the network', async () => {
    const text = 'word '.repeat(60)
    const agent = await createAgent([{ text, tokens_per_second: 60 }])
    const proxy = await startFaultyProxy(service.url, ({ method, path }) =>
      (method === 'POST' && path.endsWith('/messages')) || path.includes('/sse')
        ? { after: 4000, how: 'cut' }
        : undefined,
    )
    const { page } = await openChat(agent, { url: addressOf(proxy.target) })
    await say(page, 'Go')
    await page.getByText('Working…').waitFor()
    await isStill(page)
    expect(await textOf(page)).toBe(`Go${text.trim()}`)
    expect(proxy.exchanges.filter(({ path }) => path.includes('/sse')).length).toBeGreaterThan(0)
    await closeLast()
    await proxy.close()
  })

  it('shows hostile answers as texts', async () => {
    const hostile = await readFile('test/console/hostile.md', 'utf8')
    const shown = await openChat(await createAgent([{ text: hostile }]))
    const { page } = shown
    const foreign: string[] = []
    page.on('request', (request) => {
      if (!/^(?:data|blob):/.test(request.url()) && !request.url().startsWith(service.url)) foreign.push(request.url())
    })
    await say(page, '<img src=x onerror=alert(1)>')
    await page.getByText('cover').waitFor()
    await isStill(page)
    expect(await page.title()).toBe('Shop')
    expect(await log(page).locator('script, img, iframe, style, form, svg, [onerror], [style]').count()).toBe(0)
    const targets = await log(page)
      .locator('a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')))
    const tracker = 'https://tracker.example/'
    expect(targets).toEqual([tracker, 'https://example.com/good', `${tracker}pixel.png`, tracker])
    const text = await textOf(page)
    expect(text).toContain('<script>document.title = "owned"</script>')
    expect(text).toContain('⟨U+202E⟩')
    expect(text).not.toContain('\u001b')
    expect(foreign).toEqual([])
    await shown.expectAccessible()
  })

  it('stays where the reader is, and at the end for a reader at the end', async () => {
    const text = Array.from({ length: 60 }, (_, index) => `Line ${index}.`).join('\n\n')
    const agent = await createAgent([{ text }, { text, tokens_per_second: 200 }])
    const { page } = await openChat(agent)
    const fromEnd = () =>
      log(page).evaluate(({ scrollHeight, clientHeight, scrollTop }: Json) => scrollHeight - clientHeight - scrollTop)
    await say(page, 'One')
    await page.getByText('Line 59.').waitFor()
    await waitFor(async () => (await fromEnd()) < 2, 'the end')
    await say(page, 'Two')
    await page.getByText('Line 0.').nth(1).waitFor()
    await log(page).hover()
    await page.mouse.wheel(0, -400)
    await page.getByText('Line 59.').nth(1).waitFor()
    await isStill(page)
    expect(await fromEnd()).toBeGreaterThan(300)
  })

  it('gets its token from the page, and another one when it is refused', async () => {
    const tokens = ['garbage']
    const shop = await startEmbedSite(tokens)
    await withService({ environment: { ...ADMIN_MODE, CORS_ALLOWED_ORIGINS: shop.origin } }, async ({ url }) => {
      const { headers } = await logInUser(url, ADMIN)
      const agent = await createAgent([{ text: 'You may.' }], {}, { url, headers })
      tokens.push((await createApiKey(url, headers)).key)
      const shown = await openPage(shop.pageOf(url, { agent, 'token-url': '/token' }))
      opened.push(shown)
      await say(shown.page, 'May I?')
      await shown.page.getByText('You may.').waitFor()
      expect(shop.tokensGiven).toBe(2)
      await closeLast()
      const { page } = await openPage(shop.pageOf(url, { agent })).then((other) => {
        opened.push(other)
        return other
      })
      await say(page, 'And I?')
      await page.getByRole('alert').getByText('Authentication required').waitFor()
      await page.evaluate(`document.querySelector('agent-chat').token = () => '${tokens[1]}'`)
      await say(page, 'And now?')
      await page.getByText('You may.').waitFor()
      await closeLast()
    })
    await shop.close()
  })
})

describe('the module embed.js', () => {
  it('is small', async () => {
    const compressed = await promisify(brotliCompress)(await readFile('embed/dist/embed.js'))
    expect(compressed.length).toBeLessThanOrEqual(MAX_BYTES)
  })
})
