import { describePages } from '../support/chromium.ts'
import { closeBrowser, openConsole } from '../support/console.ts'
import { call, waitFor } from '../support/http.ts'
import { newOrganization } from '../support/shared/service.ts'

afterAll(closeBrowser)

const SCRIPT = [
  { tool_calls: [{ name: 'write_file', arguments: { path: '/hello.txt', content: 'Hello from the agent' } }] },
  { text: 'It is **written**.' },
]

describePages('agents', () => {
  it.each(['wide', 'narrow'] as const)('are made, used and changed by who has none, in a %s window', async (size) => {
    const api = await newOrganization()
    const opened = await openConsole(api.url, { size, organization: api.id })
    const { page } = opened
    await page.getByRole('link', { name: 'Make your own' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Writer')
    await page.getByLabel('Prompt', { exact: true }).fill(`\`\`\`llmsim\n${JSON.stringify(SCRIPT)}\n\`\`\``)
    await page.getByLabel('Model', { exact: true }).selectOption('Simulator: script')
    await page.getByLabel('File system', { exact: true }).check()
    await page.getByRole('button', { name: 'Require approval for a tool' }).click()
    await page.getByLabel('File system', { exact: true }).uncheck()
    await page.getByText('No capability that is chosen has a tool of this name').waitFor()
    await page.getByRole('button', { name: 'Remove', exact: true }).click()
    expect(await page.getByRole('button', { name: 'Require approval for a tool' }).isDisabled()).toBe(true)
    await page.getByLabel('File system', { exact: true }).check()
    await page.getByRole('button', { name: 'Add a client tool' }).click()
    const tool = page.getByRole('group', { name: 'Client tool 1' })
    await tool.getByLabel(/^Name/).fill('ask_user')
    await tool.getByLabel('Description').fill('Asks the user.')
    await tool.getByLabel('Parameters').fill('{"type": "object"')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('The parameters of ask_user are not valid JSON').waitFor()
    await tool.getByLabel('Parameters').fill('{"type": "object"}')
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.getByRole('heading', { name: 'What the model gets' }).waitFor()
    for (const name of ['write_file', 'ask_user']) await page.locator('summary', { hasText: name }).waitFor()
    await opened.expectAccessible()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'Writer' }).waitFor()

    const { body } = await call(api, 'GET', '/v1/agents')
    expect(body.data).toMatchObject([
      {
        name: 'Writer',
        capabilities: [{ ref: 'session_file_system' }],
        tools: [{ type: 'client_side', name: 'ask_user', description: 'Asks the user.' }],
      },
    ])
    const [agent] = body.data
    await page.getByRole('button', { name: 'Start a session' }).click()
    await page.getByLabel('Message').fill('Write it.')
    await page.keyboard.press('Enter')
    await page.getByText('It is written.').waitFor()
    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByRole('link', { name: 'hello.txt' }).click()
    await page.getByText('Hello from the agent').waitFor()

    await page.getByRole('link', { name: 'Agents', exact: true }).click()
    await page.getByRole('link', { name: 'Writer' }).click()
    // Another program changes what this form does not.
    await call(api, 'PATCH', `/v1/agents/${agent.id}`, { description: 'Changed elsewhere' })
    await page.getByLabel('Tags').fill('one\ntwo')
    // What was entered is not lost by a wrong click.
    const questions: string[] = []
    let isAllowed = false
    page.on('dialog', (dialog) => {
      questions.push(dialog.message())
      return isAllowed ? dialog.accept() : dialog.dismiss()
    })
    // The console goes back through the history, which takes a moment.
    const isBack = () => page.waitForURL((url) => url.hash === form)
    const form = new URL(page.url()).hash
    await page.getByRole('link', { name: 'Sessions', exact: true }).first().click()
    await waitFor(async () => questions.length === 1, 'the question')
    await isBack()
    await page.evaluate('history.back()')
    await waitFor(async () => questions.length === 2, 'the second question')
    await isBack()
    expect(await page.getByLabel('Tags').inputValue()).toBe('one\ntwo')
    isAllowed = true
    await page.evaluate('history.back()')
    await page.getByRole('heading', { name: 'Agents' }).waitFor()
    await page.evaluate('history.forward()')
    await page.getByRole('heading', { name: 'Writer' }).waitFor()
    expect(questions).toEqual(Array(3).fill(expect.stringMatching(/^Leave without saving/)))
    await page.getByLabel('Tags').fill('one\ntwo')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    const changed = await call(api, 'GET', `/v1/agents/${agent.id}`)
    expect(changed.body).toMatchObject({ description: 'Changed elsewhere', tags: ['one', 'two'], tools: agent.tools })
    // What is emptied is empty, also where an update takes null for "not given".
    await call(api, 'PATCH', `/v1/agents/${agent.id}`, { description: 'Two\nlines' })
    await page.reload()
    await page.getByLabel('Tags').fill('')
    await page.getByLabel('Model', { exact: true }).selectOption({ index: 0 })
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    const emptied = await call(api, 'GET', `/v1/agents/${agent.id}`)
    const { capabilities, tools } = agent
    const kept = { description: 'Two\nlines', capabilities, tools }
    expect(emptied.body).toMatchObject({ ...kept, default_model_id: null, tags: [] })
    opened.expectNoComplaints()
    await opened.close()
  })

  it('begin with an example, which writes a file without any provider', async () => {
    const api = await newOrganization()
    const opened = await openConsole(api.url, { size: 'narrow', organization: api.id })
    const { page } = opened
    await page.getByText('A simulated model is the default.').waitFor()
    await opened.expectAccessible()
    await page.getByRole('button', { name: 'Try an example' }).click()
    await page.getByLabel('Message').fill('Write me a greeting.')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('Done: /hello.md').waitFor()
    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByRole('link', { name: 'hello.md' }).click()
    await page.getByText('A simulated model wrote this file.').waitFor()
    opened.expectNoComplaints()
    await opened.close()
  })

  it('are searched, copied, exported, imported, archived and restored', async () => {
    const api = await newOrganization()
    for (const name of ['Painter', 'Plumber']) {
      await call(api, 'POST', '/v1/agents', {
        name,
        system_prompt: `You are a ${name}.`,
        capabilities: ['test_math'],
        tools: [GUARDED],
      })
    }
    const opened = await openConsole(api.url, { organization: api.id, at: '#/agents', isNew: true })
    const { page } = opened
    const names = page.getByRole('rowheader')
    await page.getByText('Painter').waitFor()
    await page.getByRole('searchbox').fill('plumb')
    await page.keyboard.press('Enter')
    await page.getByText('Painter').waitFor({ state: 'detached' })
    expect(await names.allTextContents()).toEqual(['Plumber'])
    await page.getByRole('link', { name: 'Plumber' }).click()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('Plumber.md')
    await page.getByRole('button', { name: 'Duplicate' }).click()
    await page.getByRole('heading', { name: /Plumber.+/ }).waitFor()
    await page.getByRole('button', { name: 'Archive' }).click()
    await opened.agree('Archive')
    await page.getByText('This agent is archived').waitFor()
    await page.locator('.crumbs').getByRole('link', { name: 'Agents' }).click()
    await page.getByRole('link', { name: 'Archived agents' }).click()
    await page.getByRole('heading', { name: 'Archived agents' }).waitFor()
    await opened.expectAccessible()
    await page.getByRole('rowheader').getByRole('link').click()
    await page.getByRole('button', { name: 'Restore' }).click()
    await page.getByText('This agent is archived').waitFor({ state: 'detached' })
    await page.locator('.crumbs').getByRole('link', { name: 'Agents' }).click()

    await page.getByLabel('Import a file').setInputFiles(await download.path())
    await page.getByRole('heading', { name: 'Plumber' }).waitFor()
    const { body } = await call(api, 'GET', '/v1/agents?search=plumb')
    await page.locator('.crumbs').getByRole('link', { name: 'Agents' }).click()
    const document = '---\nname: Imported\ncapabilities: [session_file_system]\n---\nYou are new.'
    await page
      .getByLabel('Import a file')
      .setInputFiles({ name: 'agent.md', mimeType: 'text/markdown', buffer: Buffer.from(document) })
    await page.getByRole('heading', { name: 'Imported' }).waitFor()
    expect(await page.getByLabel('File system', { exact: true }).isChecked()).toBe(true)
    expect(await page.getByLabel('Prompt', { exact: true }).inputValue()).toBe('You are new.')
    expect(body.data.map(({ tools }: { tools: object[] }) => tools)).toEqual([[GUARDED], [GUARDED], [GUARDED]])
    opened.expectNoComplaints()
    await opened.close()
  })
})

const GUARDED = { type: 'builtin', name: 'add', description: '', parameters: {}, policy: 'requires_approval' }
