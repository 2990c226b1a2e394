import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp } from 'node:fs/promises'
import path from 'node:path'
import type { Browser } from 'playwright-core'
import { startBrowser } from '../../dev/chromium.ts'
import { describePages } from '../support/chromium.ts'
import { type ClientProject, installClient } from '../support/client-package.ts'
import { call, modelId } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'

describePages('the page in examples/web', () => {
  let project: ClientProject
  let server: ChildProcess
  let address: string
  let service: TestService
  let browser: Browser
  beforeAll(async () => {
    project = await installClient()
    await cp('examples/web', path.join(project.folder, 'web'), { recursive: true })
    server = spawn(process.execPath, ['web/serve.js'], { cwd: project.folder, env: { ...process.env, PORT: '0' } })
    const [printed] = await once(server.stdout ?? server, 'data')
    address = /http\S+(?=\/\n)/.exec(String(printed))?.[0] ?? ''
    ;[service, browser] = await Promise.all([
      startService({ environment: { CORS_ALLOWED_ORIGINS: address } }),
      startBrowser(),
    ])
  })
  afterAll(async () => {
    await browser?.close()
    server?.kill()
    await service?.stop()
    await project?.remove()
  })

  it('chats with an agent that asks its user, from another origin, and shows it again after a reload', async () => {
    const { url } = service
    const text = 'Then blue it is. <img src="x" onerror="document.title = 1">'
    const steps = [{ tool_calls: [{ name: 'ask_user', arguments: { question: 'Which colour?' } }] }, { text }]
    const { body: agent } = await call(url, 'POST', '/v1/agents', {
      name: 'Painter',
      default_model_id: await modelId(url, 'llmsim-script'),
      system_prompt: `\`\`\`llmsim\n${JSON.stringify(steps)}\n\`\`\``,
      tools: [{ type: 'client_side', name: 'ask_user', description: 'Asks.', parameters: { type: 'object' } }],
    })
    const page = await browser.newPage()
    await page.goto(`${address}/?agent=${agent.id}&api=${encodeURIComponent(url)}`)
    await page.getByLabel('Message').fill('Paint.')
    await page.keyboard.press('Enter')
    await page.getByLabel('Which colour?').fill('blue')
    await page.keyboard.press('Enter')
    await page.getByText(text).waitFor()
    await page.reload()
    await page.getByText(text).waitFor()
    expect(await page.getByRole('log').locator('p').allTextContents()).toEqual(['Paint.', text])
    expect(await page.title()).toBe('Chat')
  })

  it('is all that its server has', async () => {
    const statusOf = async (target: string) => (await fetch(address + target)).status
    expect(await statusOf('/')).toBe(200)
    for (const target of [
      '/x.js',
      '/agent-session-client/',
      '/%2e%2e/package.json',
      '/..%2fx.js',
      '/a/b.js',
      '//',
      '/agent-session-client//etc/x.js',
    ])
      expect([target, await statusOf(target)]).toEqual([target, 404])
  })
})
