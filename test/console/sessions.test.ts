import { describePages } from '../support/chromium.ts'
import { type ConsoleOptions, type ConsolePage, closeBrowser, openConsole } from '../support/console.ts'
import { call, createScriptedSession, createSession, waitFor, waitUntilIdle } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { listTurns, post } from '../support/turns.ts'

const opened: ConsolePage[] = []
afterEach(async () => {
  for (const console of opened.splice(0)) {
    console.expectNoComplaints()
    await console.close()
  }
})
afterAll(closeBrowser)

async function open(api: Organization, at: string, options: ConsoleOptions = {}): Promise<ConsolePage> {
  const console = await openConsole(api.url, { organization: api.id, at, ...options })
  opened.push(console)
  return console
}

const LONG = 'n'.repeat(240)
/** More than are loaded at first. */
const MANY = 60

/** Creates many sessions: the newest has failed, and the one before it has answered. */
async function createMany(api: Organization): Promise<{ failed: string; answered: string }> {
  for (let left = MANY; left > 0; left--) await call(api, 'POST', '/v1/sessions', { title: `Session ${left}` })
  const error = { status: 401, message: 'Incorrect API key provided' }
  const answered = await createScriptedSession(api, [{ text: 'The **lamp** is lit.' }], { name: LONG }, { title: LONG })
  const failed = await createScriptedSession(api, [{ error }], {}, { title: 'Figures', tags: ['monthly'] })
  for (const id of [answered, failed]) {
    await post(api, id, 'Light the lighthouse')
    await waitUntilIdle(api, id)
  }
  return { failed, answered }
}

describePages('the list of sessions', () => {
  it('is searched, filtered and walked by keys, and is where it was on going back', async () => {
    const api = await newOrganization()
    const { failed } = await createMany(api)
    const shown = await open(api, '#/sessions', { look: 'middle dark' })
    const { page } = shown
    const rows = page.getByRole('main').locator('tbody tr')
    await rows.nth(MANY - 20).waitFor()
    await page.getByText(`${MANY + 2}`, { exact: true }).waitFor()
    await rows.filter({ hasText: 'Figures' }).getByText('Failed').waitFor()
    await rows.filter({ hasText: LONG }).getByText('The lamp is lit.').waitFor()
    await rows
      .filter({ hasText: LONG })
      .getByText(/^\d.* m?s$/)
      .waitFor()
    expect((await rows.nth(1).boundingBox())?.height).toBeLessThan(37)
    await shown.expectAccessible()

    await page.getByLabel('Status').selectOption('Failed')
    await rows.nth(1).waitFor({ state: 'detached' })
    expect(page.url()).toContain('#/sessions?status=failed')
    await page.getByLabel('Status').selectOption('Any status')
    await page.keyboard.press('Tab')
    await page.locator('h1').focus()
    await page.keyboard.press('/')
    await page.keyboard.type('lighthouse')
    await waitFor(async () => (await rows.count()) === 2, 'both sessions that have the word')
    await page.getByRole('searchbox').fill('')

    await rows.nth(40).waitFor()
    await page.getByRole('button', { name: 'Show more' }).click()
    await rows.nth(MANY + 1).waitFor()
    const last = page.getByRole('link', { name: 'Session 60', exact: true })
    await last.focus()
    await page.keyboard.press('k')
    await page.keyboard.press('k')
    await page.keyboard.press('j')
    const before = await page.evaluate('scrollY')
    expect(before).toBeGreaterThan(500)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Session 59', level: 1 }).waitFor()
    // The list is beside the session, and the keys go on.
    const pane = page.getByRole('complementary', { name: 'List of sessions' })
    await pane.locator('[aria-current]').getByText('Session 59').waitFor()
    const wordWidth = async () =>
      (await pane.locator('[aria-current]').getByText('New', { exact: true }).boundingBox())?.width
    expect(await wordWidth()).toBe(1)
    await page.setViewportSize({ width: 1440, height: 800 })
    expect(await wordWidth()).toBeGreaterThan(10)
    await shown.expectAccessible()
    await page.setViewportSize({ width: 1280, height: 800 })
    // The list went with the small window, and its keys come back with it.
    await pane.locator('[aria-current]').getByText('Session 59').waitFor()
    // The message box has the focus, because the session has no messages yet.
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await page.getByRole('heading', { name: 'Session 60', level: 1 }).waitFor()
    await shown.expectAccessible()
    await page.goBack()
    await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor()
    expect(await rows.count()).toBe(MANY + 2)
    await waitFor(async () => (await page.evaluate('scrollY')) === before, 'the place in the list')
    await waitFor(async () => (await page.evaluate('document.activeElement.textContent')) === 'Session 60', 'its row')

    // A schedule's session is found among them by its words or its id.
    await page.goto(`${api.url}/console#/schedules/new`)
    const search = page.getByRole('searchbox', { name: 'Search sessions' })
    const found = page.getByLabel('Session', { exact: true }).locator('option:not([value=""])')
    for (const [words, count] of [
      ['lighthouse', 2],
      [failed, 1],
    ] as const) {
      await search.fill(words)
      await search.press('Enter')
      await waitFor(async () => (await found.count()) === count, `${count} sessions`)
    }
    await page.getByLabel('Session', { exact: true }).selectOption(failed)
    expect(await found.allTextContents()).toEqual([expect.stringMatching(/^Figures · /)])
  })

  it('pins, renames and deletes by the menu of a row, and leads there and back in a narrow window', async () => {
    const api = await newOrganization()
    const id = await createSession(api, { name: LONG }, { title: 'One', tags: ['monthly', LONG, 'draft'] })
    const other = await createScriptedSession(api, [{ text: 'Much was said.' }], {}, { title: 'Two' })
    await post(api, other)
    await waitUntilIdle(api, other)
    const shown = await open(api, '#/sessions', { look: 'narrow light' })
    const { page } = shown
    await page.getByText('Draft', { exact: true }).waitFor()
    const choose = async (name: string) => {
      await page.getByRole('button', { name: 'Actions for One' }).click()
      await page.getByRole('menuitem', { name }).click()
    }
    await choose('Pin')
    await page.getByText('Pinned').waitFor({ state: 'attached' })
    await choose('Rename')
    await page.getByRole('dialog').getByLabel('Title').fill('One more')
    await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click()
    await page.getByRole('link', { name: 'One more' }).click()
    await page.getByRole('heading', { name: 'One more', level: 1 }).waitFor()
    await page.getByRole('link', { name: 'monthly' }).waitFor()
    // The box for messages is at the end of the window.
    const box = await page.getByRole('button', { name: 'Send' }).boundingBox()
    expect(box?.y).toBeGreaterThan(750)
    await page.getByRole('button', { name: 'What can you do?' }).click()
    expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('What can you do?')
    await shown.expectAccessible()
    await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'Sessions' }).click()
    await choose('Delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('link', { name: 'One more' }).waitFor({ state: 'detached' })
    await shown.expectAccessible()
    expect((await call(api, 'GET', `/v1/sessions/${id}`)).status).toBe(404)

    await page.getByRole('link', { name: 'Two' }).click()
    await page.getByText('Much was said.').waitFor()
    await page.getByRole('button', { name: 'Actions for this session' }).click()
    await page.getByRole('menuitem', { name: 'Summarise' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Summarise' }).click()
    await page.getByText('Summary, which the model reads').waitFor()
    await shown.expectAccessible()
  })

  it('says what a session is while there is none, and starts one with an agent of many', async () => {
    const api = await newOrganization()
    const shown = await open(api, '#/sessions')
    const { page } = shown
    await page.getByRole('heading', { name: 'No sessions yet' }).waitFor()
    await shown.expectAccessible()
    const body = { system_prompt: 'Be brief.' }
    for (let left = 50; left > 0; left--) await call(api, 'POST', '/v1/agents', { ...body, name: `${left} ${LONG}` })
    await call(api, 'POST', '/v1/agents', { ...body, name: 'Clerk' })
    await page.getByRole('link', { name: 'New session' }).click()
    await page.getByRole('searchbox', { name: 'Search agents' }).fill('clerk')
    await page.getByLabel('Agent', { exact: true }).selectOption('Clerk')
    await shown.expectAccessible()
    await page.getByLabel('Title').fill('Accounts')
    await page.getByRole('button', { name: 'Start' }).click()
    await page.getByRole('heading', { name: 'Accounts', level: 1 }).waitFor()
    await page.getByRole('main').getByRole('link', { name: 'Clerk' }).waitFor()
  })
})

describePages('a turn', () => {
  it('is edited and tried again in forks, which know where they come from', async () => {
    const api = await newOrganization()
    const error = { status: 401, message: 'Incorrect API key provided' }
    const id = await createScriptedSession(api, [{ text: 'By train.' }, { error }], {}, { title: 'Trip' })
    for (const text of ['To Lisbon', 'And back?']) {
      await post(api, id, text)
      await waitUntilIdle(api, id)
    }
    const shown = await open(api, `#/sessions/${id}`, { look: 'narrow dark' })
    const { page } = shown
    await page.getByRole('link', { name: 'Check the provider' }).waitFor()
    await shown.expectAccessible()
    const isFork = async () => !page.url().includes(id) && /session_\w+/.exec(page.url())?.[0]
    await page.getByRole('button', { name: 'Actions for this turn' }).first().click()
    await page.getByRole('menuitem', { name: 'Edit and run again' }).click()
    const editor = page.getByLabel('Edited message')
    expect(await editor.inputValue()).toBe('To Lisbon')
    await shown.expectAccessible()
    await editor.fill('To Porto')
    await editor.press('Enter')
    const edited = await waitFor(isFork, 'the fork of the edited message')
    await page.getByText('By train.').waitFor()
    expect(await page.getByText('To Lisbon').count()).toBe(0)
    await page.getByText('Forked from').waitFor()
    // The button moves when the answer ends.
    await page.getByText(/tokens/).waitFor()
    await page.getByRole('button', { name: 'Actions for this turn' }).click()
    const comparison = page.getByRole('menuitem', { name: 'Compare with the original' })
    const [first] = await listTurns(api, id)
    const [own] = await listTurns(api, edited)
    const address = decodeURIComponent((await comparison.getAttribute('href')) ?? '')
    expect(address).toBe(`#/compare?a=${id}/${first?.id}&b=${edited}/${own?.id}`)
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'Trip' }).click()
    await page.getByRole('button', { name: 'Try again' }).click()
    const again = await waitFor(async () => !page.url().includes(edited) && isFork(), 'the fork of the failed turn')
    await waitUntilIdle(api, again)
    expect((await listTurns(api, again)).map(({ status }) => status)).toEqual(['completed', 'failed'])
    await page.getByRole('button', { name: '2 forks' }).click()
    await page.getByRole('dialog').getByRole('link', { name: 'Trip' }).nth(2).waitFor()
    await shown.expectAccessible()
    await page.getByRole('button', { name: 'Close' }).click()
    // The original is as it was.
    expect(await listTurns(api, id)).toHaveLength(2)
    await page.getByRole('button', { name: 'Actions for this session' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor()
    expect((await call(api, 'GET', `/v1/sessions/${again}`)).status).toBe(404)
  })
})
