import type { Page } from 'playwright-core'
import { describePages } from '../support/chromium.ts'
import { type ConsolePage, closeBrowser, type Look, openConsole } from '../support/console.ts'
import { call, createSession, type Json, waitFor, waitUntilIdle } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

const DEFAULT_ORGANIZATION = 'org_00000000000000000000000000000001'

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
afterAll(closeBrowser)

async function open(at: string, look: Look = 'middle light', organization = api.id) {
  opened = await openConsole(api.url, { look, organization, at })
  page = opened.page
}

const button = (name: string) => page.getByRole('button', { name })
const list = async (path: string): Promise<Json[]> => (await call(api, 'GET', path)).body.data

/** Fills the fields of the form that is open, by their labels, and presses a button. */
async function fill(values: Record<string, string>, action: string): Promise<void> {
  for (const [label, value] of Object.entries(values)) {
    const field = page.getByLabel(label, { exact: true })
    if ((await field.evaluate((element) => element.tagName)) === 'SELECT') await field.selectOption(value)
    else await field.fill(value)
  }
  await opened.expectAccessible()
  await button(action).click()
}

describePages('the places of the console', () => {
  it('have schedules, which run, are paused, changed and deleted', async () => {
    const session = await createSession(api)
    await open('#/schedules/new', 'narrow light')
    await fill({ Name: 'Daily', 'Cron expression': 'every day', Session: session, Message: 'Any news?' }, 'Create')
    await page
      .getByRole('alert')
      .filter({ hasText: /^(?!cron_).*field/ })
      .waitFor()
    await fill({ 'Cron expression': '0 8 * * *', 'Time zone': 'Europe/Berlin' }, 'Create')
    await page.getByRole('link', { name: 'Daily' }).click()
    await button('Trigger').click()
    await page.getByText('was triggered.').waitFor()
    await page.getByRole('cell', { name: 'Completed' }).waitFor()
    await waitUntilIdle(api, session)
    await page.locator('summary', { hasText: 'More' }).click()
    await fill({ Message: 'What is new?', 'Maximum concurrent runs': '1' }, 'Save')
    await page.getByText('Saved.').waitFor()
    await fill({ 'Maximum concurrent runs': '', 'Time zone': '' }, 'Save')
    await waitFor(async () => (await list('/v1/durable/schedules'))[0]?.timezone === 'UTC', 'the second change')
    await button('Pause').click()
    await button('Resume').waitFor()
    const input = { session_id: session, message: 'What is new?' }
    expect(await list('/v1/durable/schedules')).toMatchObject([
      { timezone: 'UTC', enabled: false, max_concurrent: null, target: { name: 'session_message', input } },
    ])
    await page.getByText('None while paused.').waitFor()
    await button('Resume').click()
    await button('Pause').waitFor()
    const nextRuns = page.getByRole('region', { name: 'Next runs' })
    await waitFor(async () => {
      await page.reload()
      await page.getByText('Past runs').waitFor()
      return (await nextRuns.getByRole('listitem').count()) > 1
    }, 'the next runs')
    await button('Delete').click()
    await opened.agree('Delete')
    await page.getByText('No schedules yet').waitFor()
    expect(await list('/v1/durable/schedules')).toEqual([])
  })

  it('have providers and models, whose keys are never shown', async () => {
    await open('#/llm-providers/new', 'middle dark')
    const values = {
      Name: 'Own',
      Type: 'openai',
      'API key': 'sk-secret',
      'Base URL': 'https://llm.invalid/v1',
    }
    await fill(values, 'Test and save')
    await button('Save without a test').click()
    await page.getByRole('link', { name: 'Own' }).click()
    await page.getByText('A key is stored').waitFor()
    expect(await page.content()).not.toContain('sk-secret')
    await fill({ Name: 'Our own', 'Base URL': '' }, 'Save')
    await page.getByRole('alert').filter({ hasText: 'API key is required' }).waitFor()
    await fill({ 'API key': 'sk-other' }, 'Save')
    await page.getByText('Saved.').waitFor()
    const own = async () => (await list('/v1/llm-providers')).find(({ name }) => name === 'Our own')
    const provider = await own()
    expect(provider).toMatchObject({ api_key_set: true, base_url: null })
    await page.getByLabel('Remove the stored key').check()
    await button('Save').click()
    await waitFor(async () => (await own())?.api_key_set === false, 'the key to be gone')
    await page.getByRole('link', { name: 'Models', exact: true }).click()
    await page.getByRole('link', { name: 'New model' }).click()
    await fill({ Provider: 'Our own', Model: 'tiny-1', Name: 'Tiny' }, 'Create')
    await opened.choose('Tiny', 'Make default')
    await page
      .getByRole('row', { name: 'Tiny' })
      .getByText(/default/i)
      .waitFor()
    await page.getByRole('link', { name: 'Tiny' }).click()
    await fill({ Status: 'disabled' }, 'Save')
    await page.getByText('Saved.').waitFor()
    const models = await list(`/v1/llm-providers/${provider.id}/models`)
    expect(models.map(({ model_id }) => model_id)).toEqual(['tiny-1'])
    await page.locator('.crumbs').getByRole('link').click()
    await page.getByRole('link', { name: 'Providers' }).click()
    await opened.choose('Our own', 'Delete')
    await opened.agree('Delete')
    await page.getByRole('link', { name: 'Our own' }).waitFor({ state: 'detached' })
    expect((await list('/v1/llm-providers')).map(({ name }) => name)).not.toContain('Our own')
  })

  it('have skills, with a text to begin with', async () => {
    await open('#/skills/new', 'narrow dark')
    await button('Create').click()
    await page.getByRole('link', { name: 'release-notes' }).click()
    await fill({ 'SKILL.md': '---\nname: notes\ndescription: Notes.\n---\nWrite.', Status: 'disabled' }, 'Save')
    await page.getByText('Saved.').waitFor()
    expect(await list('/v1/skills')).toMatchObject([{ name: 'notes', status: 'disabled' }])
    await button('Delete').click()
    await opened.agree('Delete')
    await page.getByText('No skills yet').waitFor()
    expect(await list('/v1/skills')).toEqual([])
  })

  it('have members and invitations, whose links are shown once', async () => {
    await open('#/members', 'wide light')
    await page.getByRole('cell', { name: 'owner' }).waitFor()
    // Without sign-in there is one user, who cannot leave.
    expect(await button('Leave the organization').count()).toBe(0)
    await opened.expectAccessible()
    await page.getByRole('link', { name: 'Invitations' }).click()
    await page.getByRole('link', { name: 'New invitation' }).click()
    await fill({ Role: 'admin', 'Expires in days': '1' }, 'Create')
    await page.getByText('It is not shown again').waitFor()
    expect(await page.locator('.secret').textContent()).toMatch(/^http.*\/join#inv_[0-9a-f]{64}$/)
    const invitations = `/v1/orgs/${api.id}/invitations`
    const [invitation] = await list(invitations)
    const lifetimeMs = Date.parse(invitation.expires_at) - Date.parse(invitation.created_at)
    expect(Math.round(lifetimeMs / 60_000)).toBe(24 * 60)
    await page.getByRole('link', { name: 'Invitations' }).click()
    await opened.choose('For a new admin', 'Revoke')
    await opened.agree('Revoke')
    await page.getByText('No invitations yet').waitFor()
    expect(await list(invitations)).toEqual([])
  })

  it('include organizations, and show one of them', async () => {
    await open(`#/organizations/${api.id}`, 'narrow light')
    await fill({ Name: `Renamed ${api.id}` }, 'Save')
    await page.getByText('Saved.').waitFor()
    expect((await call(api, 'GET', `/v1/orgs/${api.id}`)).body.name).toBe(`Renamed ${api.id}`)
    const other = await newOrganization()
    const session = await createSession(other, undefined, { title: 'Of the other' })
    expect(session).toMatch(/^session_/)
    await call(other, 'PATCH', `/v1/orgs/${other.id}`, { name: `Other ${other.id}` })
    await page.reload()
    await page.getByRole('link', { name: 'Organizations' }).click()
    await opened.choose(`Other ${other.id}`, 'Switch')
    await page
      .getByRole('row', { name: `Other ${other.id}` })
      .getByText('current')
      .waitFor()
    await button('Menu').click()
    await page.getByRole('link', { name: 'Sessions', exact: true }).click()
    await page.getByText('Of the other').waitFor()
  })

  it('have the health of the service, live', async () => {
    await open('#/health', 'wide dark', DEFAULT_ORGANIZATION)
    await page.getByRole('row', { name: 'Workers' }).getByRole('cell', { name: /^\d+$/ }).waitFor()
    const chart = page.getByRole('img', { name: /^The last .* minute/ })
    await chart.or(page.getByText('Nothing has run since this page was opened')).waitFor()
    await page.getByText(/^(Healthy|Needs attention|Degraded)$/).waitFor()
    await opened.expectAccessible()
    const hrefOf = (name: string) => page.getByRole('link', { name }).getAttribute('href')
    expect(await hrefOf('Schedules running')).toBe('#/schedules')
    expect(await hrefOf('Tasks waiting for a worker')).toBe('#/runs?status=queued')
    await page.getByRole('link', { name: 'Runs failed in the last hour' }).click()
    await page
      .getByRole('link', { name: /^Failed \d/ })
      .and(page.locator('[aria-current=page]'))
      .waitFor()
    expect(page.url()).toMatch(/#\/runs\?status=failed&last=1h$/)
    // Who may not see it is told so.
    await opened.close()
    await open('#/health')
    await page.getByRole('alert').waitFor()
  })
})
