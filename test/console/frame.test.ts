import { describePages } from '../support/chromium.ts'
import { closeBrowser, openConsole } from '../support/console.ts'
import { call } from '../support/http.ts'
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
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => new URL(path, page.url))
    expect(files.length).toBeGreaterThan(40)
    for (const file of files.filter(({ pathname }) => pathname !== '/favicon.ico')) {
      for (const encoding of ['br', 'gzip', 'identity']) {
        const answer = await fetch(file, { headers: { 'Accept-Encoding': encoding } })
        expect([file.pathname, answer.status]).toEqual([file.pathname, 200])
        expect(answer.headers.get('content-type')).toMatch(/^text\/(javascript|css); charset=utf-8$/)
        expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
        expect(answer.headers.get('content-encoding') ?? 'identity').toBe(encoding)
        expect(await answer.text()).not.toBe('')
      }
    }
    for (const path of ['/console/0000000000000000/main.ts', '/console/x/../../main.ts', '/console/x'])
      expect((await fetch(api.url + path)).status).toBe(404)
  })

  it('has at most 150 KB of script, compressed', async () => {
    const html = await (await fetch(`${api.url}/console`)).text()
    const scripts = new Set([...html.matchAll(/(?:src|href)="(\.\/console\/[^"]+\.[jt]s)"/g)].map(([, path]) => path))
    let bytes = 0
    for (const path of scripts) {
      const answer = await fetch(new URL(path ?? '', `${api.url}/console`), { headers: { 'Accept-Encoding': 'br' } })
      bytes += Number(answer.headers.get('content-length'))
      await answer.body?.cancel()
    }
    expect(bytes).toBeGreaterThan(10_000)
    expect(bytes).toBeLessThan(150 * 1024)
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

describePages('a page that does not load whole', () => {
  it('says so, and loads again when asked to', async () => {
    const opened = await openConsole(api.url, { organization: api.id })
    const { page } = opened
    const skills = '**/views/skills.ts'
    await page.route(skills, (route) => route.abort())
    // Where the module is not kept.
    await page.goto(`${api.url}/console?again#/skills`)
    await page.getByRole('alert').getByText('The console could not be loaded.').waitFor()
    await opened.expectAccessible()
    await page.unroute(skills)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Skills' }).waitFor()
    expect(await page.getByText('The console could not be loaded.').isVisible()).toBe(false)
    opened.expectNoComplaints()
    await opened.close()
  })
})

describePages('the keyboard', () => {
  it('leads past the navigation, and to each place, with a focus that is seen', async () => {
    const { page, close } = await openConsole(api.url, { organization: api.id })
    await page.getByRole('heading', { name: 'Agents' }).waitFor()
    const focused = () => page.locator(':focus')
    // The first element of the page, though a view begins at its heading.
    await page.evaluate('document.querySelector("a").focus()')
    expect(await focused().textContent()).toBe('Skip to the content')
    expect((await focused().boundingBox())?.height).toBeGreaterThan(20)
    await page.keyboard.press('Enter')
    expect(await focused().textContent()).toBe('Agents')
    const names: string[] = []
    await page.evaluate('document.querySelector(".skip").focus()')
    for (;;) {
      await page.keyboard.press('Tab')
      const name = (await focused().textContent()) ?? ''
      const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
      expect([name, outline]).toEqual([name, 'solid'])
      if (name === 'Health') break
      names.push(name)
    }
    expect(names.slice(0, 6).map((name) => name.trim())).toEqual([
      'Agent Session Service',
      'Agents',
      'Sessions',
      'Inbox',
      'Schedules',
      'Settings',
    ])
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Health' }).waitFor()
    expect(await focused().textContent()).toBe('Health')
    await close()
  })
})

describePages('MCP servers', () => {
  it.each(['wide', 'narrow'] as const)('are made, changed and deleted in a %s window', async (size) => {
    const opened = await openConsole(api.url, { size, organization: api.id })
    const { page, expectNoComplaints, expectAccessible } = opened
    if (size === 'narrow') await page.getByText('Settings').click()
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
    page.once('dialog', (dialog) => dialog.accept())
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('None yet.').waitFor()
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

describePages('names that somebody chose', () => {
  it.each(['wide', 'narrow'] as const)('break, and turn no text, in a %s window', async (size) => {
    const api = await newOrganization()
    const name = `report\u202efdp.exe-${'long'.repeat(35)}`
    const long = 'word'.repeat(60)
    const make = async (path: string, body: object): Promise<string> => {
      const answer = await call(api, 'POST', path, body)
      expect([path, answer.status]).toEqual([path, 201])
      return answer.body.id
    }
    const agent = await make('/v1/agents', {
      name,
      system_prompt: 'x',
      description: `${name} ${long}`,
      tags: ['short'],
    })
    const session = await make('/v1/sessions', { agent_id: agent, title: name })
    await make(`/v1/sessions/${session}/fs/${encodeURIComponent(name)}`, { content: 'x' })
    const server = await make('/v1/mcp-servers', { name, url: `https://mcp.example/${long}`, description: name })
    await make('/v1/skills', { skill_md: `---\nname: notes\ndescription: ${name} ${long}\n---\nWrite.` })
    const target = { type: 'workflow', name: 'session_message', input: { agent_id: agent, message: 'Hi' } }
    const schedule = await make('/v1/durable/schedules', { name, cron_expression: '0 8 * * *', target })
    const { page, expectNoComplaints, close } = await openConsole(api.url, { size, organization: api.id })
    const questions: string[] = []
    page.on('dialog', (dialog) => {
      questions.push(dialog.message())
      return dialog.dismiss()
    })
    const places = [
      'agents',
      `agents/${agent}`,
      'sessions',
      'sessions/new',
      `sessions/${session}`,
      `sessions/${session}/files`,
      `sessions/${session}/files/${encodeURIComponent(name)}`,
      'mcp-servers',
      `mcp-servers/${server}`,
      'skills',
      'schedules',
      `schedules/${schedule}`,
    ]
    for (const place of places) {
      await page.goto(`${api.url}/console#/${place}`)
      const text = place === 'sessions/new' ? 'Start' : '⟨U+202E⟩'
      await page.getByText(text).filter({ visible: true }).first().waitFor()
      expect([place, await page.evaluate('document.documentElement.scrollWidth - innerWidth')]).toEqual([place, 0])
      const shown = (await page.title()) + (await page.evaluate('document.body.innerText'))
      expect([place, shown.includes('\u202e')]).toEqual([place, false])
      const remove = page.getByRole('main').getByRole('button', { name: /^(Delete|Archive)$/ })
      if ((await remove.count()) > 0) await remove.first().click()
      if (place === 'agents') expect(shown).toContain('make one of its models the default')
    }
    expect(questions.length).toBeGreaterThan(6)
    expect(questions.filter((question) => question.includes('\u202e'))).toEqual([])
    expectNoComplaints()
    await close()
  })
})
