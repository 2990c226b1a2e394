import type { Page } from 'playwright-core'
import { ADMIN, ADMIN_MODE, addOwnOrganization, newPassword, registerUser } from '../support/auth.ts'
import { describePages } from '../support/chromium.ts'
import { type ConsolePage, closeBrowser, looks, openConsole } from '../support/console.ts'
import { call, createSession } from '../support/http.ts'
import { withService } from '../support/service.ts'
import { sharedService } from '../support/shared/service.ts'

afterAll(closeBrowser)

const SCRIPT = [
  {
    thinking: 'I have to ask.',
    text: 'One moment.',
    tool_calls: [
      { name: 'ask_user', arguments: { question: 'Which colour?' } },
      { name: 'write_file', arguments: { path: '/wall.txt', content: 'blue' } },
      {
        name: 'sql_execute',
        arguments: { database: 'walls', sql: "CREATE TABLE coats AS SELECT 'dark blue' AS colour" },
      },
    ],
    tokens_per_second: 40,
  },
  { text: 'The wall is **painted**.' },
  { tool_calls: [{ name: 'ask_user', arguments: { question: 'Another coat?' } }] },
  { text: 'As you wish.' },
]

async function signIn(page: Page, { email, password }: { email: string; password: string }): Promise<void> {
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Agents', exact: true }).waitFor()
}

/** Places that are tabs of others. */
const ABOVE: Record<string, string> = { Providers: 'Models', Invitations: 'Members' }

/** Goes to a place by the navigation. */
async function visit(page: Page, name: string): Promise<void> {
  const above = ABOVE[name]
  if (above !== undefined) {
    await visit(page, above)
    await page.locator('.tabs').getByRole('link', { name }).click()
    return
  }
  const place = page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name: new RegExp(`^${name}`) })
  const menu = page.getByRole('button', { name: 'Menu' })
  if (await menu.isVisible()) await menu.click()
  await place.click()
}

/** Does what the console is for, as somebody would who has never used it. */
async function tour(opened: ConsolePage): Promise<void> {
  const { page } = opened
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()

  await page.getByRole('link', { name: 'Make your own' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Painter')
  await page.getByLabel('Prompt', { exact: true }).fill(`\`\`\`llmsim\n${JSON.stringify(SCRIPT)}\n\`\`\``)
  await page.getByLabel('Model', { exact: true }).selectOption('Simulator: script')
  for (const name of ['File system', 'SQL database']) await page.getByLabel(name, { exact: true }).check()
  await page.locator('summary', { hasText: 'Client-side tools' }).click()
  await press('Look something up')
  const tool = page.getByRole('group', { name: 'Client tool 1' })
  await tool.getByLabel(/^Name/).fill('ask_user')
  await tool.getByLabel('Parameters').fill('{"type": "object", "properties": {"question": {"type": "string"}}}')
  await page.getByLabel('Calls of write_file').selectOption('Asks first')
  await press('Create')
  await page.getByRole('heading', { name: 'Painter' }).waitFor()

  await press('Start a session')
  await page.getByLabel('Message', { exact: true }).fill('Paint the wall.')
  await page.keyboard.press('Enter')
  await page.getByText('One moment.').waitFor()
  await page.getByLabel('Your answer').fill('blue')
  await press('Answer')
  await press('Approve')
  await page.getByText('The wall is painted.').waitFor()
  await page.getByRole('link', { name: 'Timeline' }).click()
  await page
    .getByRole('link', { name: /approval/i })
    .first()
    .click()
  await page.getByRole('region', { name: 'Chosen span' }).waitFor()
  await page.getByRole('link', { name: 'Files' }).click()
  await page.getByRole('link', { name: 'wall.txt' }).click()
  await page.getByText('blue').waitFor()
  await opened.expectAccessible()
  await page.getByRole('navigation', { name: 'Path' }).getByRole('link', { name: 'Files' }).click()
  const note = { name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('Two coats') }
  await page.getByLabel('Upload files').setInputFiles([note])
  await page.getByRole('link', { name: 'note.txt' }).waitFor()
  await page.getByRole('link', { name: 'Databases' }).click()
  await page.getByRole('link', { name: 'walls' }).click()
  await press('Show rows')
  await page.getByRole('cell', { name: 'dark blue' }).waitFor()
  await page.getByRole('link', { name: 'Storage' }).click()
  await page.getByRole('heading', { name: 'Secrets' }).waitFor()

  await page.getByRole('link', { name: 'Conversation' }).click()
  await page.getByLabel('Message', { exact: true }).fill('Paint it again.')
  await page.keyboard.press('Enter')
  await page.getByRole('group', { name: 'Another coat?' }).waitFor()
  await visit(page, 'Inbox')
  await page.getByText('Painter').first().waitFor()
  await page.getByLabel('Your answer').fill('no')
  await press('Answer')
  await page.getByText('Nothing is waiting for you').waitFor()

  await visit(page, 'Schedules')
  await page.getByRole('link', { name: 'New schedule' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Daily')
  await page.getByLabel('Cron expression').fill('0 8 * * *')
  await page.getByLabel('Agent', { exact: true }).selectOption('Painter')
  await page.getByLabel('Message', { exact: true }).fill('Paint the door.')
  await press('Create')
  await page.getByRole('link', { name: 'Daily' }).click()
  await press('Trigger')
  await page.getByRole('link', { name: 'session', exact: true }).click()
  await page.getByText('Paint the door.').first().waitFor()
  await page.getByRole('group', { name: 'Which colour?' }).waitFor()
  await press('Stop')
  await page.getByText('Cancelled by the user.').waitFor()

  await visit(page, 'Providers')
  await page.getByRole('link', { name: 'New provider' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Ours')
  await page.getByLabel('Type').selectOption('OpenAI')
  await page.getByLabel('API key').fill('sk-of-a-test')
  await page.getByLabel('Base URL').fill('https://llm.invalid/v1')
  await press('Test and save')
  await press('Save without a test')
  await page.getByRole('row', { name: /^Ours/ }).getByText('never').waitFor()
  await visit(page, 'Models')
  await page.getByRole('row', { name: /Simulator: script/ }).waitFor()
  await visit(page, 'Skills')
  await page.getByRole('link', { name: 'New skill' }).click()
  await press('Create')
  await page.getByRole('link', { name: 'release-notes' }).waitFor()
  await visit(page, 'MCP servers')
  await page.getByRole('link', { name: 'New MCP server' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Near')
  await page.getByLabel('Address').fill('http://127.0.0.1:1/mcp')
  await press('Create')
  await page.getByText('is not on the public internet').waitFor()
  const questions: string[] = []
  page.once('dialog', (dialog) => {
    questions.push(dialog.message())
    return dialog.accept()
  })
  await visit(page, 'Members')
  await page.getByRole('cell', { name: /owner$/i }).waitFor()
  expect(questions).toEqual([expect.stringMatching(/^Leave without saving/)])
  await visit(page, 'Invitations')
  await page.getByRole('link', { name: 'New invitation' }).click()
  await press('Create')
  await page.getByText('It is not shown again').waitFor()
  await visit(page, 'API keys')
  await page.getByRole('link', { name: 'New API key' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Program')
  await press('Create')
  await page.getByText('It is not shown again').waitFor()
  await opened.expectAccessible()
  await visit(page, 'Health')
}

const LIMIT_MS = 90_000

describePages('all of the console', () => {
  it.each(looks('wide dark'))(
    'is for who signs in in mode full, in a %s window',
    async (look) => {
      const { url } = await sharedService('full')
      const user = await registerUser(url)
      await addOwnOrganization(url, user)
      const opened = await openConsole(url, { look })
      await signIn(opened.page, user)
      await opened.page.getByLabel('Organization').selectOption('Own')
      await tour(opened)
      await opened.page.getByText('Only administrators of the default organization').waitFor()
      opened.expectNoComplaints()
      await opened.close()
    },
    LIMIT_MS,
  )

  it.each(looks('narrow light'))(
    'is for the administrator in mode admin, in a %s window',
    async (look) => {
      await withService({ environment: ADMIN_MODE }, async ({ url }) => {
        const opened = await openConsole(url, { look })
        await signIn(opened.page, ADMIN)
        await tour(opened)
        await opened.page.getByRole('row', { name: 'Workers' }).getByRole('cell', { name: /^\d+$/ }).waitFor()
        opened.expectNoComplaints()
        await opened.close()
      })
    },
    LIMIT_MS,
  )
})

describePages('a member of several organizations', () => {
  it('joins by a link, finds what others link to, changes only what members may, and leaves', async () => {
    const { url } = await sharedService('full')
    const [owner, password] = [await registerUser(url), newPassword()]
    const own = await addOwnOrganization(url, owner, 'Of the owner')
    const invited = await call(url, 'POST', `/v1/orgs/${own.id}/invitations`, { role: 'member' }, owner.headers)
    const session = await createSession(url, undefined, { title: 'Look at this' }, own.headers)
    const skill = { skill_md: '---\nname: notes\ndescription: Notes.\n---\nWrite.' }
    await call(url, 'POST', '/v1/skills', skill, own.headers)
    const email = `member-${Date.now()}@example.com`
    await call(url, 'POST', '/v1/auth/register', { email, password, name: 'Mia' })

    const opened = await openConsole(url)
    const { page } = opened
    await page.goto(url + new URL(invited.body.url).pathname + new URL(invited.body.url).hash)
    await page.getByRole('button', { name: 'I have an account' }).click()
    await opened.expectAccessible()
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in and join' }).click()
    await page.getByText('You are now a member of Of the owner.').waitFor()
    await page.getByRole('link', { name: 'Open the console' }).click()
    const organization = page.getByLabel('Organization')
    const shown = () => organization.evaluate((select) => (select as unknown as { value: string }).value)
    await organization.waitFor()
    expect(await shown()).toBe(own.id)

    for (const name of ['MCP servers', 'Providers', 'Models', 'Schedules', 'Invitations', 'Skills']) {
      await visit(page, name)
      await page.getByRole('heading', { name, exact: true }).waitFor()
      await page
        .getByRole('row')
        .or(page.getByText(/^No .* yet$/))
        .first()
        .waitFor()
      expect([name, await page.getByRole('main').getByRole('button').count()]).toEqual([name, 0])
      expect([name, await page.getByRole('link', { name: /^New / }).count()]).toEqual([name, 0])
    }

    // A link to what another organization has.
    await organization.selectOption('Default Organization')
    await page.goto(`${url}/console#/sessions/${session}`)
    await page.getByRole('heading', { name: 'Look at this' }).waitFor()
    expect(await shown()).toBe(own.id)

    await visit(page, 'Members')
    await page.getByRole('button', { name: 'Actions for Mia' }).waitFor()
    expect(await page.getByRole('button', { name: /^Actions for/ }).count()).toBe(1)
    await opened.choose('Mia', 'Leave the organization')
    await opened.agree('Leave the organization')
    await organization.waitFor({ state: 'detached' })
    await page.getByRole('heading', { name: 'Members' }).waitFor()
    opened.expectNoComplaints()
    await opened.close()
  })
})
