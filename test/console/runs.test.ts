import { readFile } from 'node:fs/promises'
import type { Locator, Page } from 'playwright-core'
import { registerUser } from '../support/auth.ts'
import { describePages } from '../support/chromium.ts'
import { type ConsolePage, closeBrowser, openConsole } from '../support/console.ts'
import { call } from '../support/http.ts'
import { newOrganization, type Organization, sharedService } from '../support/shared/service.ts'

afterAll(closeBrowser)

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

async function open(at: string, size: 'wide' | 'narrow' = 'wide', isNew = false): Promise<void> {
  opened = await openConsole(api.url, { size, organization: api.id, at, isNew })
  page = opened.page
}

const link = (name: string | RegExp): Locator => page.getByRole('link', { name })
const row = (text: string): Locator => page.getByRole('row').filter({ hasText: text })

async function choose(message: string, action: string | RegExp): Promise<void> {
  await page.getByRole('button', { name: `Actions for ${message}` }).click()
  await page.getByRole('menuitem', { name: action }).click()
}

const confirm = (action: string) => page.getByRole('dialog').getByRole('button', { name: action }).click()

const USAGE = `
  INSERT INTO usage_hours SELECT $1, date_trunc('hour', now()) - make_interval(days => days), NIL, NIL, NIL, NIL, model,
    calls, unpriced, 1000, 200, 0, 0, cost
  FROM (VALUES ('claude-sonnet', 3, 0, 0.0132, 0), ('claude-sonnet', 1, 0, 1.5, 2), ('home-made', 2, 2, 0, 2))
    AS used (model, calls, unpriced, cost, days)`.replaceAll(
  'NIL',
  `'${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}'::uuid`,
)

describePages('costs', () => {
  it.each(['wide', 'narrow'] as const)('are summed, saved and limited in a %s window', async (size) => {
    await api.query(USAGE, [api.uuid])
    await open('#/costs?days=7', size, true)
    await page.getByRole('img', { name: /^Cost by day .* at most \$1\.50/ }).waitFor()
    await page.getByText('The price of 2 calls is unknown').waitFor()
    await link(/^Models$/)
      .last()
      .click()
    const cells = (name: string) => row(name).getByRole('cell').allTextContents()
    await row('home-made').waitFor()
    expect((await cells('home-made'))[0]).toBe('unknown')
    expect((await cells('claude-sonnet')).slice(0, 2)).toEqual(['$1.51', '4'])
    await link(/^Days$/).click()
    await page.getByRole('cell', { name: '$0.0132' }).waitFor()
    await opened.expectAccessible()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save as CSV' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('costs-by-day-7-days.csv')
    expect(await readFile(await download.path(), 'utf8')).toMatch(/^start,calls,.*cost_usd.*\n.*0\.0132/)

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
    await choose('Agent', 'Change')
    await page.getByLabel('Limit, in US dollars').fill('4')
    await page.getByLabel('When it is reached').selectOption('ask')
    await page.getByRole('button', { name: 'Save' }).click()
    await row('$0 of $4.00').getByText('Asks to raise it').waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    await choose('Agent', 'Delete')
    await confirm('Delete')
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
