import { readFile } from 'node:fs/promises'
import type { Locator, Page, Route } from 'playwright-core'
import { registerUser } from '../support/auth.ts'
import { describePages } from '../support/chromium.ts'
import { type ConsolePage, closeBrowser, type Look, looks, openConsole } from '../support/console.ts'
import { call, createScriptedSession, type Json, waitUntilIdle } from '../support/http.ts'
import { newOrganization, type Organization, sharedService } from '../support/shared/service.ts'
import { MUTE, post } from '../support/turns.ts'

afterAll(closeBrowser)

const FAILS = [{ error: { status: 400, message: 'no such thing' } }]
const MATHS = { name: 'Counter', capabilities: [{ ref: 'test_math' }] }
const adds = (a: number, text: string) => [{ tool_calls: [{ name: 'add', arguments: { a, b: 2 } }] }, { text }]

let api: Organization
let opened: ConsolePage
let page: Page
beforeEach(async () => {
  api = await newOrganization()
})
afterEach(async () => {
  opened.expectNoComplaints()
  await opened.close()
})

async function open(at: string, look: Look = 'middle light', isNew = false): Promise<void> {
  opened = await openConsole(api.url, { look, organization: api.id, at, isNew })
  page = opened.page
}

/** Creates a session of a scripted agent with one message. Waits for its end if it has one. */
async function run(text: string, steps: object[], agent: object = {}): Promise<string> {
  const id = await createScriptedSession(api, steps, agent)
  await post(api, id, text)
  if (steps[0] !== MUTE) await waitUntilIdle(api, id)
  return id
}

const link = (name: string | RegExp): Locator => page.getByRole('link', { name })
const row = (text: string): Locator => page.getByRole('row').filter({ hasText: text })
const rows = (): Promise<string[]> => page.locator('tbody th').allTextContents()

describePages('runs', () => {
  it.each(looks('wide light', 'narrow dark'))('are filtered, followed and stopped in a %s window', async (look) => {
    await run('Count the ships', adds(1, 'Three.'), MATHS)
    await run('Count the x'.padEnd(240, 'x'), FAILS, { name: 'n'.repeat(240) })
    await run('Watch the door', [MUTE])
    const roof = await run('Watch the roof', [MUTE])
    await post(api, roof, 'Watch the cellar')
    await open('#/runs', look)
    await link('All 5').waitFor()
    await row('Count the ships').getByText('Completed').waitFor()
    expect(await rows()).toHaveLength(5)
    await opened.expectAccessible()

    await link('Failed 1').click()
    await page.getByText('Model failed llm_error').waitFor()
    expect(await rows()).toHaveLength(1)
    await page.getByLabel('Error').selectOption('Timed out')
    await page.getByText('No runs match').waitFor()
    await link('Clear filters').click()
    await link('All 5').click()
    await page.getByLabel('Agent').selectOption('Counter')
    await page.getByLabel('Time').selectOption('Last hour')
    await link('All 1').waitFor()
    // The address has all of it.
    await page.reload()
    await row('Count the ships').waitFor()
    expect(await rows()).toEqual(['Count the ships'])
    await link('Clear filters').click()
    await page.getByLabel('Search messages').fill('watch -roof')
    await link('All 2').waitFor()
    await page.getByLabel('Order').selectOption('Longest running first')
    await row('Watch the cellar').waitFor({ state: 'detached' })
    await row('Watch the door').waitFor()
    expect(await rows()).toEqual(['Watch the door'])

    await opened.choose('Watch the door', 'Stop')
    await opened.agree('Stop')
    // It no longer matches, but stays where somebody looks at it.
    await row('Watch the door').getByText('Cancelled').waitFor()
    await page.goto(`${api.url}/console#/runs?status=active&status=queued`)
    await page.getByRole('button', { name: 'Stop all matching (2)' }).click()
    await page.getByText('Stop 2 runs?').waitFor()
    await opened.expectAccessible()
    await opened.agree('Stop')
    await link('Cancelled 3').waitFor()
    const { body } = await call(api, 'GET', '/v1/turns/counts')
    expect(body).toMatchObject({ active: 0, queued: 0, cancelled: 3 })
  })

  it('come without moving what is under the pointer', async () => {
    const id = await run('First', adds(1, 'Three.'), MATHS)
    await open('#/runs')
    const first = row('First')
    await first.hover()
    const before = await first.boundingBox()
    await post(api, id, 'Second')
    await page.getByRole('button', { name: '1 new' }).click()
    await row('Second').waitFor()
    expect(await rows()).toEqual(['Second', 'First'])
    await post(api, id, 'Third')
    const news = page.getByRole('button', { name: '1 new' })
    await first.hover()
    const after = await first.boundingBox()
    await news.waitFor()
    expect(await first.boundingBox()).toEqual(after)
    expect(before?.x).toBe(after?.x)
    // Once nobody points at them, the rows follow by themselves.
    await page.getByRole('heading', { name: 'Runs', exact: true }).hover()
    await page.locator('h1').focus()
    await row('Third').waitFor()
  })

  it.each(looks('wide dark', 'narrow light'))('run again, and are compared, in a %s window', async (look) => {
    const ships = await run('Count the ships', adds(1, 'Three ships today.'), MATHS)
    const boats = await run('Count the boats', adds(5, 'Seven boats today.'), MATHS)
    await open('#/runs', look)
    await opened.choose('Count the ships', 'Compare with…')
    await page.getByText('Comparing “Count the ships”').waitFor()
    await opened.expectAccessible()
    // The second run is read first.
    const readLast = async (first: Route) => {
      await page.getByRole('region', { name: 'Run B' }).getByText('Completed').waitFor()
      await first.continue()
    }
    await page.route(`**/v1/sessions/${ships}/turns/*`, readLast, { times: 1 })
    await opened.choose('Count the boats', 'Compare with the marked run')
    await page.getByRole('heading', { name: 'Compare runs' }).waitFor()
    const answer = (side: string) => page.getByRole('region', { name: `Answer of run ${side}` })
    await answer('B').getByText('Seven boats').waitFor()
    expect(await answer('A').locator('del').allTextContents()).toEqual(['Three', 'ships'])
    expect(await answer('B').locator('ins').allTextContents()).toEqual(['Seven', 'boats'])
    await page.getByRole('region', { name: 'Message of run A' }).getByText('Count the ships').waitFor()
    const tools = page.getByRole('region', { name: 'Tools of run B' })
    await tools.getByText('only here').waitFor()
    await page.getByRole('row', { name: 'Model llmsim-script llmsim-script' }).waitFor()
    const [left, right] = [await answer('A').boundingBox(), await answer('B').boundingBox()]
    expect(left?.y === right?.y).toBe(!look.startsWith('narrow'))
    await opened.expectAccessible()

    await link('Runs').last().click()
    await opened.choose('Count the boats', 'Run again')
    await page.waitForURL(/#\/sessions\/session_/)
    const forks = async (): Promise<string[]> => {
      const { data } = (await call(api, 'GET', '/v1/sessions')).body
      return data.map((session: Json) => session.id).filter((id: string) => ![ships, boats].includes(id))
    }
    expect(page.url()).toContain((await forks())[0])
    await page.getByText('Seven boats today.').waitFor()
    // Twice, as by impatient people.
    const again = page.getByRole('button', { name: 'Run again', exact: true })
    const before = page.url()
    await again.dispatchEvent('click')
    await again.dispatchEvent('click')
    await page.waitForURL((url) => url.href !== before)
    expect(await forks()).toHaveLength(2)
    await page.goto(`${api.url}/console#/compare?a=${ships}/turn_${'0'.repeat(32)}&b=x/y`)
    await page.getByText('There is no such run').nth(1).waitFor()
  })
})

const USAGE = `
  INSERT INTO usage_hours SELECT $1, date_trunc('hour', now()) - make_interval(days => days), NIL, NIL, NIL, NIL, model,
    calls, unpriced, 1000, 200, 0, 0, cost
  FROM (VALUES ('claude-sonnet', 3, 0, 0.0132, 0), ('claude-sonnet', 1, 0, 1.5, 2), ('home-made', 2, 2, 0, 2))
    AS used (model, calls, unpriced, cost, days)`.replaceAll(
  'NIL',
  `'${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}'::uuid`,
)

describePages('costs', () => {
  it.each(looks('middle dark', 'narrow light'))('are summed, saved and limited in a %s window', async (look) => {
    await api.query(USAGE, [api.uuid])
    await open('#/costs?days=7', look, true)
    await page.getByRole('img', { name: /^Cost by day .* at most \$1\.50/ }).waitFor()
    await page.getByText('The price of 2 calls is unknown').waitFor()
    await link(/^Models$/)
      .last()
      .click()
    const cells = (name: string) => row(name).getByRole('cell').allTextContents()
    await row('home-made').waitFor()
    // Without a price it has no share.
    expect((await cells('home-made')).find((text) => text !== '')).toBe('unknown')
    expect((await cells('claude-sonnet')).slice(0, 3)).toEqual(['100%', '$1.51', '4'])
    await link(/^Tokens$/).click()
    await row('home-made').getByText('33%').waitFor()
    await row('claude-sonnet').getByText('67%').waitFor()
    await link(/^Days$/).click()
    await page.getByRole('cell', { name: '$0.0132' }).waitFor()
    await opened.expectAccessible()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save as CSV' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('costs-by-day-7-days.csv')
    expect(await readFile(await download.path(), 'utf8')).toMatch(/^start,calls,.*\s+\S+,0\.0132,0\s/)

    await call(api, 'POST', '/v1/agents', { name: 'a'.repeat(240), system_prompt: 'Help.' })
    await link('New budget').click()
    await page.getByLabel('For').selectOption('Agent')
    await page.getByLabel('Agent', { exact: true }).selectOption('a'.repeat(240))
    await page.getByLabel('Limit, in US dollars').fill('much')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('alert').filter({ hasText: 'such as "2.50"' }).waitFor()
    await page.getByLabel('Limit, in US dollars').fill('2.50')
    await opened.expectAccessible()
    await page.getByRole('button', { name: 'Create' }).click()
    await row('$0 of $2.50').getByText('Each month').waitFor()
    await opened.choose('Agent', 'Change')
    await page.getByLabel('Limit, in US dollars').fill('4')
    await page.getByLabel('When it is reached').selectOption('ask')
    await page.getByRole('button', { name: 'Save' }).click()
    await row('$0 of $4.00').getByText('Asks to raise it').waitFor()
    await opened.choose('Agent', 'Delete')
    await opened.agree('Delete')
    await page.getByText('No budgets yet').waitFor()
  })

  it('are for administrators', async () => {
    const { url } = await sharedService('full')
    const { email, password } = await registerUser(url)
    opened = await openConsole(url, { at: '#/costs' })
    page = opened.page
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.keyboard.press('Enter')
    await page.getByText('Owners and administrators of the organization see').waitFor()
  })
})
