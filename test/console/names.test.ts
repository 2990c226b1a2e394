import type { Page } from 'playwright-core'
import { addOwnOrganization, createApiKey, registerUser } from '../support/auth.ts'
import { describePages } from '../support/chromium.ts'
import { closeBrowser, expectRoomInAllWindows, openConsole } from '../support/console.ts'
import { call, createScriptedSession, type Target } from '../support/http.ts'
import { expectRoom } from '../support/layout.ts'
import { sharedService } from '../support/shared/service.ts'
import { clientTool, postAndAsk } from '../support/turns.ts'

afterAll(closeBrowser)

/** A name of 240 characters without a space. One turns around the text that follows it. */
const NAME = `report\u202efdp.exe-${'n'.repeat(225)}`
/** Its like for names that take few characters. */
const PLAIN = 'n'.repeat(240)
const TURNS_TEXT = '\u202e'

async function make(api: Target, path: string, body: object, method = 'POST'): Promise<string> {
  const answer = await call(api, method, path, body)
  expect([path, answer.status < 300, answer.body]).toEqual([path, true, answer.body])
  return answer.body?.id
}

/** Creates one of everything, and returns the places that show it: lists, pages and forms with a choice of it. */
async function makeAll(api: Target, user: string): Promise<string[]> {
  const question = [{ text: NAME, tool_calls: [{ name: 'ask_user', arguments: { question: NAME } }] }]
  const fields = { name: NAME, description: NAME, tags: [PLAIN], tools: [clientTool('ask_user')] }
  const session = await createScriptedSession(api, question, fields, { title: NAME, tags: [PLAIN] })
  const asked = postAndAsk(api, session, NAME)
  const { agent_id: agent } = (await call(api, 'GET', `/v1/sessions/${session}`)).body
  const inSession = `/v1/sessions/${session}`
  await make(api, `${inSession}/fs/${encodeURIComponent(NAME)}`, { content: NAME })
  await make(api, `${inSession}/storage/keys/${encodeURIComponent(NAME)}`, { value: NAME }, 'PUT')
  await make(api, `${inSession}/databases`, { name: 'n'.repeat(64) })
  const server = await make(api, '/v1/mcp-servers', {
    name: NAME,
    url: `https://mcp.example/${PLAIN}`,
    description: NAME,
  })
  const skill = await make(api, '/v1/skills', { skill_md: `---\nname: notes\ndescription: ${NAME}\n---\nWrite.` })
  const provider = await make(api, '/v1/llm-providers', { name: NAME, provider_type: 'openai', api_key: 'sk-x' })
  const model = await make(api, `/v1/llm-providers/${provider}/models`, { model_id: PLAIN, display_name: NAME })
  const target = { type: 'workflow', name: 'session_message', input: { agent_id: agent, message: NAME } }
  const schedule = await make(api, '/v1/durable/schedules', { name: NAME, cron_expression: '0 8 * * *', target })
  const limit = { limit_usd: '2.50' }
  await make(api, '/v1/budgets', { scope: 'agent', agent_id: agent, ...limit })
  await make(api, '/v1/budgets', { scope: 'user', user_id: user, ...limit })
  const turn = (await asked).id
  const files = `sessions/${session}/files`
  return [
    ...['agents', 'agents/new', `agents/${agent}`, `agents/${agent}/versions`],
    ...[
      'sessions',
      `sessions?agent_id=${agent}`,
      'sessions/new',
      `sessions/${session}`,
      `sessions/${session}/turns/${turn}`,
    ],
    ...[files, `${files}/${encodeURIComponent(NAME)}`, `${files}?pattern=report`],
    ...[
      `sessions/${session}/databases`,
      `sessions/${session}/databases/${'n'.repeat(64)}`,
      `sessions/${session}/storage`,
    ],
    ...['schedules', 'schedules/new', `schedules/${schedule}`],
    ...['skills', `skills/${skill}`, 'mcp-servers', `mcp-servers/${server}`],
    ...['llm-providers', `llm-providers/${provider}`, 'llm-models', 'llm-models/new', `llm-models/${model}`],
    ...['members', 'api-keys', 'organizations', 'runs', `runs?agent_id=${agent}`, 'inbox'],
    ...['costs', 'costs?by=user', 'costs?by=key', 'costs/budgets/new'],
  ]
}

/** Chooses the long name in each select of the page that has it. */
async function chooseIt(page: Page): Promise<void> {
  for (const select of await page.locator('main select').all()) {
    const option = select.locator('option', { hasText: 'nnnn' }).first()
    if ((await option.count()) === 0) continue
    await select.selectOption((await option.getAttribute('value')) ?? '')
  }
}

/** Opens the menu of the first thing, and asks to delete it. Returns the question. */
async function askToDelete(page: Page): Promise<string | undefined> {
  const main = page.getByRole('main')
  const menu = main.getByRole('button', { name: /^Actions for/ })
  if ((await menu.count()) > 0) {
    await menu.first().click()
    await page.getByRole('menuitem').first().waitFor()
  }
  const name = /^(?:Delete|Archive|Revoke)$/
  const remove = page.getByRole('menuitem', { name }).or(main.getByRole('button', { name }))
  if ((await remove.count()) === 0) return undefined
  await remove.first().click()
  const dialog = page.getByRole('dialog')
  const question = (await dialog.textContent()) ?? ''
  await expectRoom(page)
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  return question
}

describePages('names of 240 characters without a space', () => {
  it('have room in every list, form and choice, and turn no text', async () => {
    const { url } = await sharedService('full')
    const user = await registerUser(url, NAME)
    const own = await addOwnOrganization(url, user, NAME)
    const api = { url, headers: own.headers }
    await createApiKey(url, own.headers, { name: NAME })
    const places = await makeAll(api, user.id)
    const opened = await openConsole(url, { look: 'narrow dark', organization: own.id, at: '#/agents' })
    const { page } = opened
    await page.request.post(`${url}/v1/auth/login`, { data: { email: user.email, password: user.password } })
    await page.reload()
    const questions: string[] = []
    // What was chosen is left unsaved.
    page.on('dialog', (dialog) => dialog.accept())
    for (const place of places) {
      await page.goto(`${url}/console#/${place}`)
      await page.waitForURL((at) => at.hash === `#/${place}`)
      await page.getByRole('main').locator('.skeleton').first().waitFor({ state: 'detached' })
      await page
        .getByRole('main')
        .getByText('nnnn')
        .or(page.locator('option', { hasText: 'nnnn' }))
        .first()
        .waitFor({ state: 'attached' })
      if (place.endsWith('new')) await chooseIt(page)
      await expectRoomInAllWindows(page)
      const shown = (await page.title()) + (await page.evaluate('document.body.innerText'))
      expect([place, shown.includes(TURNS_TEXT)]).toEqual([place, false])
      questions.push((await askToDelete(page)) ?? '')
    }
    expect(questions.filter((question) => question.includes('nnnn')).length).toBeGreaterThan(9)
    expect(questions.filter((question) => question.includes(TURNS_TEXT))).toEqual([])
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search' }).fill('report')
    await page.getByRole('option', { name: 'nnnn' }).nth(1).waitFor()
    await expectRoomInAllWindows(page)
    opened.expectNoComplaints()
    await opened.close()
  })
})
