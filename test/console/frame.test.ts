import type { Route } from 'playwright-core'
import { describePages } from '../support/chromium.ts'
import { closeBrowser, looks, openConsole } from '../support/console.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { addressOf, call, waitFor } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { giveTools } from '../support/mcp-tools.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})
afterAll(closeBrowser)

describe('the page', () => {
  it('is where / leads, under a policy without exceptions, and its files are kept for ever', async () => {
    const page = await fetch(`${api.url}/`)
    const html = await page.text()
    expect([page.status, page.url]).toEqual([200, `${api.url}/console`])
    const policy = page.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'; script-src 'self' 'sha256-")
    expect(policy).not.toContain('unsafe')
    const files = namesIn(html).map((name) => new URL(`./console/files/${name}`, page.url))
    for (const file of files) {
      for (const encoding of ['br', 'gzip', 'identity']) {
        const answer = await fetch(file, { headers: { 'Accept-Encoding': encoding } })
        expect([file.pathname, answer.status]).toEqual([file.pathname, 200])
        expect(answer.headers.get('content-type')).toMatch(/^text\/(javascript|css); charset=utf-8$/)
        expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
        expect(answer.headers.get('content-encoding') ?? 'identity').toBe(encoding)
        expect(await answer.text()).not.toBe('')
      }
    }
    const licences = new URL(/rel="license" href="([^"]+)"/.exec(html)?.[1] ?? '', page.url)
    expect(await (await fetch(licences)).text()).toMatch(/^preact [\d.]+: MIT$/m)
    for (const path of ['/console/files/main-00000000.js', '/console/files/..%2fmanifest.json', '/console/x'])
      expect((await fetch(api.url + path)).status).toBe(404)
  })

  it('has at most 150 kB of files, compressed', async () => {
    const html = await (await fetch(`${api.url}/console`)).text()
    const names = namesIn(html)
    expect(names.length).toBeGreaterThan(10)
    expect(await sizeOf(['', ...names.map((name) => `/files/${name}`)])).toBeLessThan(150_000)
  })
})

/** Names of all files that a page may load: its own, and the chunks of its views. */
const namesIn = (html: string): string[] => [...new Set(html.match(/[\w-]+-[A-Z0-9]{8}\.(?:js|css)/g))]

/** Returns the size of files of the console as browsers get them. */
async function sizeOf(paths: string[]): Promise<number> {
  let sum = 0
  for (const path of paths) {
    const answer = await fetch(`${api.url}/console${path}`, { headers: { 'Accept-Encoding': 'br' } })
    const size = Number(answer.headers.get('content-length'))
    expect([path, size > 0]).toEqual([path, true])
    await answer.body?.cancel()
    sum += size
  }
  return sum
}

describePages('the first view', () => {
  it('is at most 6 files and 60 kB', async () => {
    const opened = await openConsole(api.url, { organization: api.id, at: '#/agents' })
    const { page } = opened
    const loaded: string[] = []
    page.on('request', (request) => loaded.push(new URL(request.url()).pathname))
    await page.goto(`${api.url}/console?again#/agents`)
    await page.getByRole('heading', { name: 'Agents', exact: true }).waitFor()
    await page.getByText('No agents yet').or(page.getByText('Try an example')).first().waitFor()
    const files = loaded.filter((path) => path.startsWith('/console'))
    expect(files.length).toBeLessThanOrEqual(6)
    expect(await sizeOf(files.map((path) => path.slice('/console'.length)))).toBeLessThan(60_000)
    await opened.close()
  })
})

describePages('the checks of these tests', () => {
  it('find what is planted: an error, what the policy forbids, and a control without a name', async () => {
    const { page, expectNoComplaints, expectAccessible, close } = await openConsole(api.url, { organization: api.id })
    await page.getByRole('heading', { level: 1 }).waitFor()
    await expectAccessible()
    await page.evaluate('document.querySelector("main").append(document.createElement("input"))')
    await expect(expectAccessible()).rejects.toThrow(/label/)
    expectNoComplaints()
    await page.evaluate('document.body.append(Object.assign(new Image(), { src: "https://tracker.example/x.png" }))')
    expect(expectNoComplaints).toThrow(/Content Security Policy/)
    await close()
  })

  it('find HTML that does not come from DOMPurify', async () => {
    const { page, expectNoComplaints, close } = await openConsole(api.url, { organization: api.id })
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.evaluate('try { document.body.innerHTML = "x" } catch {}')
    expect(expectNoComplaints).toThrow(/TrustedHTML/)
    await close()
  })
})

const [LOST, LATE] = ['The console could not be loaded.', 'Loading takes longer than usual.']
/** Requests whose answers break off midway or come late, and the sentence about it. */
const LOSSES: [path: string, fault: 'cut' | 'late', sentence: string][] = [
  ['/main-', 'cut', LOST],
  ['/style-', 'cut', LOST],
  ['/skills-', 'cut', 'This page could not be loaded.'],
  ['/v1/auth/me', 'cut', 'The service cannot be reached.'],
  ['/main-', 'late', LATE],
  ['/style-', 'late', LATE],
  ['/skills-', 'late', LATE],
  ['/v1/auth/me', 'late', LATE],
  ['/v1/skills', 'late', LATE],
]

describePages('a page that does not load whole', () => {
  it('says so, loads again when asked to, and is there by itself when what was late has come', async () => {
    let lost: (typeof LOSSES)[number] | undefined
    const isLost = (url: string, fault: string) => lost !== undefined && lost[1] === fault && url.includes(lost[0])
    const proxy = await startFaultyProxy(api.url, ({ path }) =>
      isLost(path, 'cut') ? { after: 9, how: 'cut' } : undefined,
    )
    const opened = await openConsole(addressOf(proxy.target), {
      look: 'narrow dark',
      organization: api.id,
      isNew: true,
    })
    const { page } = opened
    await page.clock.install()
    let waiting: Route[] = []
    await page.route('**/*', (route) =>
      isLost(route.request().url(), 'late') ? waiting.push(route) : route.continue(),
    )
    for (const [index, loss] of LOSSES.entries()) {
      lost = loss
      const [path, fault, sentence] = loss
      // Where the module is not kept.
      await page.goto(`${addressOf(proxy.target)}/console?${index}#/skills`, { waitUntil: 'commit' })
      const said = page.getByText(sentence).first()
      const isSaid = async () => {
        if (fault === 'late') await page.clock.fastForward(10_000)
        return said.isVisible()
      }
      await waitFor(isSaid, `${path} that is ${fault} to be told of`)
      if (fault === 'cut') await opened.expectAccessible()
      lost = undefined
      if (fault === 'cut' || path === '/skills-') await page.getByRole('button', { name: 'Try again' }).click()
      else for (const route of waiting) await route.continue()
      waiting = []
      await page.getByText('No skills yet').waitFor()
      expect([path, await said.isVisible()]).toEqual([path, false])
    }
    // No view, though each object of a script has a property of this name.
    await page.goto(`${api.url}/console?nothing#/constructor`)
    await page.getByText('There is no such page.').waitFor()
    opened.expectNoComplaints()
    await page.context().close()
    await proxy.close()
  })
})

describePages('MCP servers', () => {
  it.each(looks('middle dark', 'narrow light'))('are made, changed and deleted in a %s window', async (look) => {
    const opened = await openConsole(api.url, { look, organization: api.id })
    const { page, expectNoComplaints, expectAccessible } = opened
    await page.getByRole('link', { name: 'New agent' }).first().waitFor()
    if (look.startsWith('narrow')) await page.getByRole('button', { name: 'Menu' }).click()
    await page.getByRole('link', { name: 'MCP servers' }).click()
    await expectAccessible()
    await page.getByRole('link', { name: 'New MCP server' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Files')
    await page.getByLabel('Address', { exact: true }).fill('https://mcp.example.com/mcp')
    await page.getByLabel('Headers').fill('{"X-Team": "blue"')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('Headers is not valid JSON').waitFor()
    await page.getByLabel('Headers').fill('{"X-Team": "blue"}')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByLabel('Description', { exact: true }).fill('All the files')
    await expectAccessible()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    const { body } = await call(api, 'GET', '/v1/mcp-servers')
    expect(body.data).toMatchObject([{ name: 'Files', description: 'All the files', headers: { 'X-Team': '***' } }])
    await page.getByRole('button', { name: 'Delete' }).click()
    await opened.agree('Delete')
    await page.getByText('No MCP servers yet').waitFor()
    expectNoComplaints()
    await opened.close()
  })

  it('show their tools, and mark the changed ones until they are accepted', async () => {
    const api = await newOrganization()
    const server = { name: 'Library', url: 'https://mcp.example/mcp' }
    const { id } = (await call(api, 'POST', '/v1/mcp-servers', server)).body
    await giveTools(api, toUuid(id), '2026-11-24T08:00:00.000Z')
    const opened = await openConsole(api.url, { organization: api.id, at: `#/mcp-servers/${id}` })
    const { page, expectNoComplaints, expectAccessible } = opened
    const tool = page.getByRole('group').filter({ hasText: 'mcp_library__search' })
    await tool.getByText('changed').waitFor()
    await expectAccessible()
    await page.getByRole('button', { name: 'Accept the changes' }).click()
    await tool.getByText('changed').waitFor({ state: 'detached' })
    await tool.getByText('mcp_library__search').waitFor()
    expect((await call(api, 'GET', `/v1/mcp-servers/${id}`)).body.changed_tools).toEqual([])
    expectNoComplaints()
    await opened.close()
  })
})

describePages('the sign-in at an MCP server', () => {
  it('is begun in a new tab, and its failure shown', async () => {
    const api = await newOrganization()
    const server = { name: 'Boards', url: 'https://mcp.example/mcp', oauth: { as: 'user', scopes: ['boards'] } }
    const { id } = (await call(api, 'POST', '/v1/mcp-servers', server)).body
    const opened = await openConsole(api.url, { organization: api.id, at: `#/mcp-servers/${id}` })
    const { page, expectAccessible } = opened
    const tab = page.waitForEvent('popup')
    await page.getByRole('button', { name: 'Connect', exact: true }).click()
    await tab
    await page.getByText('The sign-in failed').waitFor()
    await expectAccessible()
    await page.getByLabel('Sign-in').fill('{"as": "organization"}')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    const { oauth } = (await call(api, 'GET', `/v1/mcp-servers/${id}`)).body
    expect(oauth).toMatchObject({ as: 'organization', scopes: [], connected: false })
    await opened.close()
  })
})
