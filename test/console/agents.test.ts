import { createScriptedAgent } from '../support/agents.ts'
import { describePages } from '../support/chromium.ts'
import { closeBrowser, looks, openConsole } from '../support/console.ts'
import { call, type Json, waitFor } from '../support/http.ts'
import { newOrganization } from '../support/shared/service.ts'

afterAll(closeBrowser)

const SCRIPT = [
  { tool_calls: [{ name: 'write_file', arguments: { path: '/hello.txt', content: 'Hello from the agent' } }] },
  { text: 'It is **written**.' },
]

describePages('agents', () => {
  it.each(looks('wide dark', 'narrow light'))(
    'are made, used and changed by who has none, in a %s window',
    async (look) => {
      const api = await newOrganization()
      const opened = await openConsole(api.url, { look, organization: api.id })
      const { page } = opened
      await page.getByRole('link', { name: 'Make your own' }).click()
      await page.getByLabel('Name', { exact: true }).fill('Writer')
      await page.getByLabel('Prompt', { exact: true }).fill(`\`\`\`llmsim\n${JSON.stringify(SCRIPT)}\n\`\`\``)
      await page.getByLabel('Model', { exact: true }).selectOption('Simulator: script')
      await page.getByRole('button', { name: 'What are capabilities and tools?' }).click()
      await page.getByText('A capability is tools that belong together').waitFor()
      await page.keyboard.press('Escape')
      await page.getByLabel('File system', { exact: true }).check()
      await page.getByLabel('Calls of delete_file').selectOption('Asks first')
      // A choice for a tool that is no longer offered is not sent.
      await page.getByLabel('Test: math', { exact: true }).waitFor({ state: 'detached' })
      await page.getByLabel('Show test capabilities').check()
      await page.getByLabel('Test: math', { exact: true }).check()
      await page.getByLabel('Calls of add', { exact: true }).selectOption('Asks first')
      await page.getByLabel('Test: math', { exact: true }).uncheck()
      await page.locator('summary', { hasText: 'Client-side tools' }).click()
      await page.getByRole('button', { name: 'Look something up' }).click()
      const tool = page.getByRole('group', { name: 'Client tool 1' })
      await tool.getByLabel(/^Name/).fill('ask_user')
      await tool.getByLabel('Description').fill('Asks the user.')
      await tool.getByLabel('Parameters').fill('{"type": "object"')
      await page.getByRole('button', { name: 'Create' }).click()
      await page.getByText('The parameters of ask_user are not valid JSON').waitFor()
      await tool.getByLabel('Parameters').fill('{"type": "object"}')
      await page.getByRole('button', { name: 'Preview' }).click()
      const shown = page.getByRole('dialog', { name: 'What the model gets' })
      for (const name of ['write_file', 'ask_user']) await shown.locator('summary', { hasText: name }).waitFor()
      await opened.expectAccessible()
      await shown.getByRole('button', { name: 'Close' }).click()
      // The agent is tried before it exists.
      const show = async (name: string) => {
        if (look.startsWith('narrow')) await page.getByRole('button', { name, exact: true }).click()
      }
      await show('Try it')
      await page.getByLabel('Message to try').fill('Write it.')
      await page.keyboard.press('Enter')
      await page.getByText('It is written.').waitFor()
      expect((await call(api, 'GET', '/v1/agents')).body.data).toEqual([])
      await show('Settings')
      const tried = (await call(api, 'GET', '/v1/sessions')).body.data
      expect(tried).toMatchObject([{ agent_id: null, title: 'Try: Writer', tags: ['draft'] }])
      await page.getByRole('button', { name: 'Create' }).click()
      await page.getByRole('heading', { name: 'Writer' }).waitFor()

      const { body } = await call(api, 'GET', '/v1/agents')
      expect(body.data).toMatchObject([
        {
          name: 'Writer',
          capabilities: [{ ref: 'session_file_system' }],
          tools: [
            { type: 'builtin', name: 'delete_file', policy: 'requires_approval' },
            { type: 'client_side', name: 'ask_user', description: 'Asks the user.' },
          ],
        },
      ])
      const [agent] = body.data
      // What only tried something is gone with its page.
      await waitFor(async () => (await call(api, 'GET', '/v1/sessions')).body.total === 0, 'no session to be left')
      await page.getByRole('button', { name: 'Start a session' }).click()
      await page.getByLabel('Message', { exact: true }).fill('Write it.')
      await page.keyboard.press('Enter')
      await page.getByText('It is written.').waitFor()
      await page.getByRole('link', { name: 'Files' }).click()
      await page.getByRole('link', { name: 'hello.txt' }).click()
      await page.getByText('Hello from the agent').waitFor()

      const goTo = async (name: string) => {
        if (look.startsWith('narrow')) await page.getByRole('button', { name: 'Menu', exact: true }).click()
        await page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name, exact: true }).click()
      }
      await goTo('Agents')
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
      await goTo('Sessions')
      await waitFor(async () => questions.length === 1, 'the question')
      await isBack()
      await page.evaluate('history.back()')
      await waitFor(async () => questions.length === 2, 'the second question')
      await isBack()
      expect(await page.getByLabel('Tags').inputValue()).toBe('one\ntwo')
      await page.getByRole('button', { name: 'Start a session' }).click()
      const leaving = page.getByRole('dialog', { name: /^Leave without saving/ })
      await leaving.getByRole('button', { name: 'Cancel' }).click()
      await leaving.waitFor({ state: 'detached' })
      isAllowed = true
      await page.evaluate('history.back()')
      await page.getByRole('heading', { name: 'Agents', exact: true }).waitFor()
      await page.evaluate('history.forward()')
      await page.getByRole('heading', { name: 'Writer' }).waitFor()
      expect(questions).toEqual(Array(3).fill(expect.stringMatching(/^Leave without saving/)))
      await page.getByLabel('Tags').fill('one\ntwo')
      // What is entered during a save stays unsaved.
      const answer = Promise.withResolvers<void>()
      await page.route(`**/v1/agents/${agent.id}`, async (route) => {
        await answer.promise
        await route.continue()
      })
      await page.getByRole('button', { name: 'Save', exact: true }).click()
      await page.getByLabel('Tags').fill('one\ntwo\nthree')
      answer.resolve()
      await page.getByRole('button', { name: 'Save', exact: true, disabled: false }).waitFor()
      await page.unroute(`**/v1/agents/${agent.id}`)
      isAllowed = false
      await goTo('Sessions')
      await waitFor(async () => questions.length === 4, 'the question after a save')
      await isBack()
      isAllowed = true
      const changed = await call(api, 'GET', `/v1/agents/${agent.id}`)
      expect(changed.body).toMatchObject({ description: 'Changed elsewhere', tags: ['one', 'two'], tools: agent.tools })
      // What is emptied is empty, also where an update takes null for "not given".
      await call(api, 'PATCH', `/v1/agents/${agent.id}`, { description: 'Two\nlines' })
      await page.reload()
      await page.getByLabel('Tags').fill('')
      await page.getByLabel('Model', { exact: true }).selectOption({ index: 0 })
      await page.getByRole('button', { name: 'Save', exact: true }).click()
      await page.getByText('Saved.').waitFor()
      const emptied = await call(api, 'GET', `/v1/agents/${agent.id}`)
      const { capabilities, tools } = agent
      const kept = { description: 'Two\nlines', capabilities, tools }
      expect(emptied.body).toMatchObject({ ...kept, default_model_id: null, tags: [] })
      opened.expectNoComplaints()
      await opened.close()
    },
  )

  it('begin with an example, which writes a file without any provider', async () => {
    const api = await newOrganization()
    const opened = await openConsole(api.url, { look: 'narrow dark', organization: api.id })
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
    const opened = await openConsole(api.url, {
      look: 'middle dark',
      organization: api.id,
      at: '#/agents',
      isNew: true,
    })
    const { page } = opened
    const names = page.getByRole('rowheader')
    await page.getByText('Painter').waitFor()
    await page.getByRole('searchbox').fill('plumb')
    await page.keyboard.press('Enter')
    await page.getByText('Painter').waitFor({ state: 'detached' })
    expect(await names.allTextContents()).toEqual(['Plumber'])
    await page.getByRole('link', { name: 'Plumber' }).click()
    const choose = async (name: string) => {
      await page.getByRole('button', { name: 'More actions' }).click()
      await page.getByRole('menuitem', { name }).click()
    }
    const [download] = await Promise.all([page.waitForEvent('download'), choose('Export')])
    expect(download.suggestedFilename()).toBe('Plumber.md')
    await choose('Duplicate')
    await page.getByRole('heading', { name: /Plumber.+/ }).waitFor()
    await choose('Archive')
    await opened.agree('Archive')
    await page.getByText('This agent is archived').waitFor()
    await page.locator('.crumbs').getByRole('link', { name: 'Agents' }).click()
    await page.getByRole('link', { name: 'Archived agents' }).click()
    await page.getByRole('heading', { name: 'Archived agents' }).waitFor()
    await opened.expectAccessible()
    await page.getByRole('button', { name: /^Actions for Plumber/ }).click()
    await page.getByRole('menuitem', { name: 'Restore' }).click()
    await page.getByText('No archived agents.').waitFor()
    await page.locator('.crumbs').getByRole('link', { name: 'Agents' }).click()
    // Nothing is archived any more.
    await page.getByText('Painter').waitFor()
    expect(await page.getByRole('link', { name: 'Archived agents' }).count()).toBe(0)

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

describePages('changes of an agent', () => {
  it('are kept as a session also by who leaves before the answer', async () => {
    const api = await newOrganization()
    const agent = await createScriptedAgent(api, [{ text: 'tried' }])
    const opened = await openConsole(api.url, { organization: api.id, at: `#/agents/${agent}` })
    const { page } = opened
    await page.getByLabel('Message to try').fill('Go')
    await page.keyboard.press('Enter')
    await page.getByRole('log').getByText('tried', { exact: true }).waitFor()
    const answered = Promise.withResolvers<void>()
    await page.route('**/v1/sessions/*', async (route) => {
      if (route.request().method() === 'PATCH') await answered.promise
      await route.continue()
    })
    await page.getByRole('button', { name: 'Keep as a session' }).click()
    await page.locator('.crumbs').getByRole('link', { name: 'Agents' }).click()
    await page.getByRole('heading', { name: 'Agents', exact: true }).waitFor()
    answered.resolve()
    const tags = async () => (await call(api, 'GET', '/v1/sessions')).body.data.map((session: Json) => session.tags)
    await waitFor(async () => JSON.stringify(await tags()) === '[[]]', 'the session to be kept')
    await opened.close()
  })

  it('are versions, tried before they are saved, compared and restored, and never overwrite others unasked', async () => {
    const api = await newOrganization()
    const script = (text: string) => `First line\n\`\`\`llmsim\n${JSON.stringify([{ text }])}\n\`\`\``
    const agent_id = await createScriptedAgent(api, [{ text: 'saved' }], { name: 'Versioned', tags: ['old'] })
    const path = `/v1/agents/${agent_id}`
    const opened = await openConsole(api.url, { organization: api.id, at: `#/agents/${agent_id}` })
    const { page } = opened
    const say = async (text: string) => {
      await page.getByLabel('Message to try').fill('Go')
      await page.keyboard.press('Enter')
      await page.getByRole('log').getByText(text, { exact: true }).waitFor()
    }
    await say('saved')
    await page.getByLabel('Prompt', { exact: true }).fill(script('tried'))
    await page.getByText('New version: starts over').waitFor()
    await say('tried')
    expect(await page.getByRole('log').getByText('saved').count()).toBe(0)
    await page.getByRole('button', { name: 'Keep as a session' }).click()
    await page.getByRole('link', { name: 'Open the session' }).waitFor()
    await page.getByText('Unsaved changes').waitFor()
    await page.getByRole('button', { name: 'Discard' }).click()
    await page.getByText('Unsaved changes').waitFor({ state: 'detached' })

    await page.getByLabel('Prompt', { exact: true }).fill(script('second'))
    await page.getByRole('button', { name: 'Save with a note' }).click()
    await page.getByLabel('Why this change?').fill('Says second')
    await opened.agree('Save')
    await page.getByText('Version 2').waitFor()
    // Others change the same field.
    await call(api, 'PATCH', path, { system_prompt: script('elsewhere'), version_note: 'By another program' })
    await page.getByLabel('Prompt', { exact: true }).fill(script('third'))
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    const conflict = page.getByRole('alert', { name: 'Somebody else has changed this agent' })
    await conflict.getByText('By another program').waitFor()
    await conflict.getByText('Changed: prompt.').waitFor()
    await opened.expectAccessible()
    expect((await call(api, 'GET', path)).body.system_prompt).toBe(script('elsewhere'))
    await conflict.getByRole('button', { name: 'Reload' }).click()
    await conflict.waitFor({ state: 'detached' })
    expect(await page.getByLabel('Prompt', { exact: true }).inputValue()).toBe(script('elsewhere'))
    await call(api, 'PATCH', path, { system_prompt: script('again elsewhere') })
    await page.getByLabel('Prompt', { exact: true }).fill(script('mine'))
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await conflict.getByRole('button', { name: 'Overwrite' }).click()
    await page.getByText('Saved.').waitFor()
    expect((await call(api, 'GET', path)).body).toMatchObject({ version: 5, system_prompt: script('mine') })

    await page.getByRole('link', { name: 'Versions' }).click()
    const versions = page.getByRole('list', { name: 'Versions' })
    await versions.getByText('Says second').click()
    await page.getByRole('heading', { name: 'Version 2', exact: true }).waitFor()
    const lines = page.getByRole('group', { name: 'Changes of Prompt' })
    await lines.getByText('[{"text":"saved"}]').waitFor()
    await lines.getByText('[{"text":"second"}]').waitFor()
    await opened.expectAccessible()
    await page.getByRole('button', { name: 'Restore' }).click()
    await opened.agree('Restore')
    await versions.getByText('Version 2 restored').waitFor()
    expect((await call(api, 'GET', path)).body).toMatchObject({ version: 6, system_prompt: script('second') })
    const { data } = (await call(api, 'GET', '/v1/sessions')).body
    expect(data).toMatchObject([{ agent_id, tags: [] }])
    const kept = await call(api, 'GET', `/v1/sessions/${data[0].id}`)
    expect(kept.body.draft_prompt).toBe(script('tried'))
    opened.expectNoComplaints()
    await opened.close()
  })

  it('are found among thousands of agents, in pages and in a choice that is searched', async () => {
    const api = await newOrganization()
    await api.query(
      `INSERT INTO agents (id, organization_id, name, system_prompt, updated_at)
       SELECT gen_random_uuid(), $1, 'Agent ' || n, repeat('long prompt ', 1000), now() FROM generate_series(1, 200) n`,
      [api.uuid],
    )
    const opened = await openConsole(api.url, { organization: api.id, at: '#/agents' })
    const { page } = opened
    await page.getByRole('button', { name: 'Show more' }).waitFor()
    expect(await page.getByRole('rowheader').count()).toBe(50)
    await page.getByRole('button', { name: 'Show more' }).click()
    await waitFor(async () => (await page.getByRole('rowheader').count()) === 100, 'the second page')
    await page.goto(`${api.url}/console#/schedules/new`)
    await page.getByLabel('Search agents').fill('Agent 77')
    await page.getByLabel('Agent', { exact: true }).selectOption('Agent 77')
    await page.getByLabel('Search agents').fill('Nobody')
    await page.getByText('No agents found').waitFor()
    opened.expectNoComplaints()
    await opened.close()
  })
})

const GUARDED = { type: 'builtin', name: 'add', description: '', parameters: {}, policy: 'requires_approval' }
