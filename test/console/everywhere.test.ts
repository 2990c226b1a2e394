import type { Page } from 'playwright-core'
import { describePages } from '../support/chromium.ts'
import { type ConsolePage, closeBrowser, type Look, openConsole } from '../support/console.ts'
import { call, createSession, type Json } from '../support/http.ts'
import { type ListServer, openaiList, startListServer } from '../support/list-server.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
let provider: ListServer
let opened: ConsolePage
let page: Page
let session: string
beforeAll(async () => {
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
  provider = await startListServer()
  session = await createSession(service.url, undefined, { title: 'Paint the wall' })
  await call(service.url, 'POST', '/v1/agents', { name: 'Painter', system_prompt: 'Paint.' })
})
afterEach(async () => {
  opened.expectNoComplaints()
  await opened.close()
})
afterAll(async () => {
  await provider.close()
  await service.stop()
  await closeBrowser()
})

async function open(at: string, look: Look): Promise<void> {
  opened = await openConsole(service.url, { at, look })
  page = opened.page
}

const heading = (name: string) => page.getByRole('heading', { name, exact: true })
const option = (name: string | RegExp) => page.getByRole('dialog').getByRole('option', { name })
const list = async (path: string): Promise<Json[]> => (await call(service.url, 'GET', path)).body.data

describePages('everywhere in the console', () => {
  it('one goes anywhere by the palette and by keys', async () => {
    await open('#/schedules', 'wide light')
    await heading('Schedules').and(page.locator(':focus')).waitFor()
    await page.keyboard.press('Control+k')
    await option('Paint the wall').waitFor()
    await page.keyboard.type('pain')
    await option('Painter').waitFor()
    expect(await option('Agents').count()).toBe(0)
    await opened.expectAccessible()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowUp')
    expect(await option('Painter').getAttribute('aria-selected')).toBe('true')
    await page.keyboard.press('Enter')
    await heading('Painter').waitFor()

    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search' }).fill(`error in ${session}.`)
    await option(`Open ${session}`).waitFor()
    await page.keyboard.press('Enter')
    await heading('Paint the wall').waitFor()

    // Keys are the dialog's until it has closed, and then the box's of an empty session until it is left.
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await page.locator('#message:focus').waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('g')
    await page.keyboard.press('a')
    await heading('Agents').waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByText('Go to sessions').waitFor()
    await opened.expectAccessible()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByRole('combobox', { name: 'Search' }).fill('dark theme')
    await option('Switch theme: dark').click()
    await page.locator('html[data-theme=dark]').waitFor()
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByRole('combobox', { name: 'Search' }).fill('nothing is called so')
    await page.getByText('Nothing matches').waitFor()
    await opened.expectAccessible()
  })

  it('a provider is tested, and its default model chosen, on one page', async () => {
    const models = openaiList('gpt-5', 'gpt-5-mini')
    provider.answer = (response) => {
      if (response.req.headers.authorization === 'Bearer sk-right-right') models(response)
      else response.writeHead(401).end('{"error":{"message":"No such key"}}')
    }
    const before = (await list('/v1/llm-providers')).length
    await open('#/llm-providers/new', 'narrow dark')
    await page.getByLabel('API key').fill('sk-wrong-wrong')
    await page.getByLabel('Base URL').fill(provider.baseUrl)
    await page.getByRole('button', { name: 'Test and save' }).click()
    await page.locator('.field', { hasText: 'API key' }).getByText('OpenAI answered 401: No such key').waitFor()
    await opened.expectAccessible()
    expect(await list('/v1/llm-providers')).toHaveLength(before)
    await page.getByLabel('API key').fill('sk-right-right')
    await page.getByRole('button', { name: 'Test and save' }).click()
    await page.getByText('2 models are ready to use.').waitFor()
    await page.getByLabel('Default model').selectOption('gpt-5-mini')
    await opened.expectAccessible()
    await page.getByRole('button', { name: 'Use as the default' }).click()
    await page.getByText('gpt-5-mini is the default model now.').waitFor()

    // A model that is no longer listed is shown on request.
    provider.answer = openaiList('gpt-5-mini')
    await opened.choose('OpenAI', 'Test and read models')
    await page.getByText('1 no longer listed').waitFor()
    await page.locator('.tabs').getByRole('link', { name: 'Models' }).click()
    await page.getByRole('row', { name: 'gpt-5-mini' }).getByText('Default').waitFor()
    expect(await page.getByRole('link', { name: 'gpt-5', exact: true }).count()).toBe(0)
    await page.getByLabel(/no longer lists/).check()
    await page.getByRole('link', { name: 'gpt-5', exact: true }).waitFor()
  })

  it('a schedule is made of words, and its run is a click away', async () => {
    const id = await createSession(service.url, undefined, { title: 'Paint the hall' })
    await open('#/schedules/new', 'middle light')
    await page.getByLabel('Name', { exact: true }).fill('Weekly')
    await page.getByLabel('Repeats').selectOption('Every week')
    await page.getByLabel('On', { exact: true }).selectOption('Friday')
    await page.getByLabel('At', { exact: true }).fill('07:30')
    await page.getByLabel('Time zone').fill('Europe/Berlin')
    await page.getByText('Every Friday at 07:30, Europe/Berlin').waitFor()
    await page.getByText(/^Next: Fri.*07:30 · Fri.*07:30 · Fri.*07:30$/).waitFor()
    const choice = page.getByLabel('Session', { exact: true })
    await choice.selectOption(id)
    await choice.locator('option:checked', { hasText: /^Paint the hall · / }).waitFor({ state: 'attached' })
    await page.getByLabel('Message', { exact: true }).fill('Another coat, please.')
    await opened.expectAccessible()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('link', { name: 'Weekly' }).waitFor()
    expect(await list('/v1/durable/schedules')).toMatchObject([
      { cron_expression: '30 7 * * 5', timezone: 'Europe/Berlin' },
    ])
    await opened.choose('Weekly', 'Trigger')
    await page.getByRole('link', { name: 'Open the run' }).click()
    await page.waitForURL(new RegExp(`#/sessions/${id}/turns/turn_`))
    await page.getByRole('heading', { level: 1 }).waitFor()
  })
})
