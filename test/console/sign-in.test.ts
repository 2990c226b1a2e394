import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Locator, Page } from 'playwright-core'
import { ADMIN, ADMIN_MODE, addOwnOrganization, FULL_MODE, logInUser, newPassword } from '../support/auth.ts'
import { describePages } from '../support/chromium.ts'
import { closeBrowser, looks, openConsole } from '../support/console.ts'
import { call, createSession } from '../support/http.ts'
import { withService } from '../support/service.ts'
import { sharedService } from '../support/shared/service.ts'

afterAll(closeBrowser)

async function openMenu(page: Page): Promise<Locator> {
  const menu = page.getByRole('button', { name: 'Menu' })
  if (await menu.isVisible()) await menu.click()
  return menu
}

/** Looks at the navigation, which narrow pages have behind a button. */
async function withMenu(page: Page, look: () => Promise<unknown>): Promise<void> {
  const menu = await openMenu(page)
  await look()
  if (await menu.isVisible()) await menu.evaluate((button) => button.ariaExpanded === 'true' && button.click())
}

describePages('signing in', () => {
  it.each(looks('wide light', 'narrow dark'))('works with a password in mode full, in a %s window', async (look) => {
    const { url } = await sharedService('full')
    const [email, password] = [`person-${Date.now()}@example.com`, newPassword()]
    const opened = await openConsole(url, { look, at: '#/api-keys' })
    const { page } = opened
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await opened.expectAccessible()
    await page.getByRole('button', { name: 'Create an account' }).click()
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByLabel('Name', { exact: true }).fill('A person')
    await opened.expectAccessible()
    await page.getByRole('button', { name: 'Create an account' }).click()
    await page.getByRole('heading', { name: 'API keys', exact: true }).waitFor()
    await withMenu(page, () => page.getByText('A person').waitFor())

    // The access token ends, and is renewed with the other cookie.
    await page.context().clearCookies({ name: 'access_token' })
    await page.getByRole('link', { name: 'New API key' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Program')
    await page.getByLabel('Scopes').fill('nonsense')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('alert').filter({ hasText: 'scopes' }).waitFor()
    await page.getByLabel('Scopes').fill('read')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('It is not shown again').waitFor()

    // A form keeps its input while its user, whose login is gone, signs in again.
    await page.locator('.crumbs').getByRole('link').click()
    await page.getByRole('link', { name: 'New API key' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Another program')
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.keyboard.press('Enter')
    await page.getByLabel('E-mail').waitFor({ state: 'detached' })
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Another program')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('It is not shown again').waitFor()

    // Signing in again after the login is gone leads back to the same page.
    await page.context().clearCookies()
    await withMenu(page, () => page.getByRole('link', { name: 'Sessions', exact: true }).click())
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill('wrong')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Password').fill(password)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Sessions', exact: true }).waitFor()

    // A second organization, without a trace of the first.
    const user = await logInUser(url, { email, password })
    const own = await addOwnOrganization(url, { ...user, id: '', email, password })
    await createSession(url, undefined, { title: 'Of my own' }, own.headers)
    await page.reload()
    await withMenu(page, () => page.getByLabel('Organization').selectOption('Own'))
    await page.getByText('Of my own').waitFor()
    await page.reload()
    await page.getByText('Of my own').waitFor()
    await opened.expectAccessible()
    await openMenu(page)
    await page.getByRole('button', { name: 'Colours and account' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await page.getByText('Of my own').count()).toBe(0)
    opened.expectNoComplaints()
    await opened.close()
  })

  it('offers no account with a password where passwords are turned off, also to those who are invited', async () => {
    const environment = { ...FULL_MODE, AUTH_DISABLE_PASSWORD: 'true' }
    await withService({ environment, worker: false }, async ({ url }) => {
      const opened = await openConsole(url)
      const { page } = opened
      await page.evaluate("localStorage.setItem('console.theme', 'dark')")
      await page.goto(`${url}/join#token`)
      await page.locator('#enter', { hasText: 'Create an account' }).waitFor({ state: 'attached' })
      expect(await page.getByRole('button').count()).toBe(0)
      // It has the colours that were chosen in the console.
      expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('dark')
      opened.expectNoComplaints()
      await opened.close()
    })
  })

  it('is for the administrator alone in mode admin', async () => {
    await withService({ environment: ADMIN_MODE, worker: false }, async ({ url }) => {
      const opened = await openConsole(url)
      const { page } = opened
      await page.getByLabel('E-mail').fill(ADMIN.email)
      expect(await page.getByRole('button', { name: 'Create an account' }).count()).toBe(0)
      await page.getByLabel('Password').fill(ADMIN.password)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Agents', exact: true }).waitFor()
      opened.expectNoComplaints()
      await opened.close()
    })
  })
})

describe('the address of the console', () => {
  it('is not there with CONSOLE=off', async () => {
    await withService({ environment: { CONSOLE: 'off' }, worker: false }, async ({ url }) => {
      expect((await call(url, 'GET', '/console')).status).toBe(404)
      expect((await fetch(url)).url).toBe(`${url}/docs`)
    })
  })
})

describePages('the address of the console', () => {
  it('may be any that a proxy gives it, and the API may have a prefix', async () => {
    await withService({ environment: { API_PREFIX: '/api' }, worker: false }, async ({ url }) => {
      const proxy = createServer((incoming, outgoing) => {
        const path = incoming.url?.replace(/^\/tools\/agents(?=\/)/, '')
        if (path === incoming.url) return void outgoing.writeHead(404).end()
        const { method, headers } = incoming
        const passed = request(url + path, { method, headers: { ...headers, host: new URL(url).host } }, (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
          answer.pipe(outgoing)
        })
        passed.on('error', () => outgoing.destroy())
        incoming.pipe(passed)
      })
      await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
      const { port } = proxy.address() as AddressInfo
      const opened = await openConsole(`http://127.0.0.1:${port}/tools/agents`, { at: '#/agents/new' })
      const { page } = opened
      await page.getByLabel('Name', { exact: true }).fill('Behind a proxy')
      await page.getByLabel('Prompt', { exact: true }).fill('Help.')
      await page.getByRole('button', { name: 'Create' }).click()
      await page.getByRole('heading', { name: 'Behind a proxy' }).waitFor()
      await page.getByRole('button', { name: 'Start a session' }).click()
      await page.getByText('No messages yet.').waitFor()
      opened.expectNoComplaints()
      await opened.close()
      proxy.closeAllConnections()
      proxy.close()
    })
  })
})
