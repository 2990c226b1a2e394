import { describePages } from '../support/chromium.ts'
import { closeBrowser, looks, openConsole } from '../support/console.ts'
import { call, createScriptedSession, listEvents, waitFor, waitUntilIdle } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { clientTool, guardedTool, postAndAsk, submit } from '../support/turns.ts'

afterAll(closeBrowser)

describePages('the inbox', () => {
  it.each(looks('wide light', 'narrow dark'))(
    'has what waits in all sessions, longest waiting first, in a %s window',
    async (look) => {
      const api = await newOrganization()
      const ask = (question: string) => [
        { text: `I ask: ${question}`, tool_calls: [{ name: 'ask_user', arguments: { question } }] },
        { text: 'Fine.' },
      ]
      const create = (question: string, title: string) =>
        createScriptedSession(api, ask(question), { tools: [clientTool('ask_user')] }, { title })
      const [door, roof] = [await create('Which colour?', 'The door'), await create('<b>Slate</b>?', 'The roof')]
      const { pending_tool_calls } = await postAndAsk(api, door)
      await postAndAsk(api, roof)
      const opened = await openConsole(api.url, { look, organization: api.id, at: '#/inbox' })
      const { page } = opened
      const titles = page.getByRole('main').getByRole('heading', { level: 2 })
      await page.getByText('I ask: Which colour?').waitFor()
      await page.getByText('<b>Slate</b>?', { exact: true }).waitFor()
      expect(await titles.allTextContents()).toEqual(['The door', 'The roof'])
      expect(await page.title()).toBe('(2) Inbox · Console')
      await opened.expectAccessible()
      await submit(api, door, [{ tool_call_id: pending_tool_calls[0].id, result: 'blue' }])
      await waitUntilIdle(api, door)
      await page.getByText('Which colour?').first().waitFor({ state: 'detached' })
      expect(await titles.allTextContents()).toEqual(['The roof'])
      expect(await page.title()).toBe('(1) Inbox · Console')
      opened.expectNoComplaints()
      await opened.close()
    },
  )

  it('moves nothing under a pointer, neither for what comes nor for what is over', async () => {
    const api = await newOrganization()
    const create = (name: string) =>
      createScriptedSession(
        api,
        [{ tool_calls: [{ name, arguments: { a: 6, b: 7 } }] }, { text: 'Fine.' }],
        { capabilities: [{ ref: 'test_math' }], tools: [guardedTool(name)] },
        { title: name },
      )
    const [first, second, third] = [await create('add'), await create('subtract'), await create('multiply')]
    await postAndAsk(api, first)
    const { pending_tool_calls } = await postAndAsk(api, second)
    const opened = await openConsole(api.url, { organization: api.id, at: '#/inbox' })
    const { page } = opened
    const approve = page.getByRole('group', { name: 'Approval of add' }).getByRole('button', { name: 'Approve' })
    await approve.hover()
    const before = await approve.boundingBox()
    await postAndAsk(api, third)
    const news = page.getByRole('button', { name: '1 new' })
    await news.waitFor()
    await submit(api, second, [{ tool_call_id: pending_tool_calls[0].id, result: { approved: true } }])
    await page.getByText('No longer waiting.').waitFor()
    expect(await approve.boundingBox()).toEqual(before)
    const titles = page.getByRole('main').getByRole('heading', { level: 2 })
    expect(await titles.allTextContents()).toEqual(['add', 'subtract'])
    await news.click()
    expect(await titles.allTextContents()).toEqual(['add', 'multiply'])
    // Nothing can be clicked that has just moved, as below the error of a poll.
    await approve.click({ trial: true })
    await page.evaluate(MOVE_CARDS)
    await opened.expectAccessible()
    opened.expectNoComplaints()
    await opened.close()
  })

  it('shows the changes of a file, approves always, and denies with a reason that the agent reads', async () => {
    const api = await newOrganization()
    const write = (id: string, content: string) => ({
      id,
      name: 'write_file',
      arguments: { path: '/notes.md', content },
    })
    const remove = { id: 'remove', name: 'delete_file', arguments: { path: '/notes.md' } }
    const steps = [
      { text: 'I add a line.', tool_calls: [write('one', 'kept\nnew\n'), remove] },
      { tool_calls: [write('two', 'newer\n')] },
      { text: 'Done.' },
    ]
    const id = await createScriptedSession(api, steps, {
      capabilities: ['session_file_system'],
      tools: [guardedTool('write_file'), guardedTool('delete_file')],
    })
    await call(api, 'POST', `/v1/sessions/${id}/fs/notes.md`, { content: 'kept\nold\n' })
    await postAndAsk(api, id)
    const opened = await openConsole(api.url, { organization: api.id, at: '#/inbox', look: 'narrow light' })
    const { page } = opened
    await page.getByText('I add a line.').waitFor()
    await page.locator('.line.added').waitFor()
    expect(await page.locator('.line:is(.added, .removed)').allTextContents()).toEqual(['old', 'new'])
    const deletion = page.getByRole('group', { name: 'Approval of delete_file' })
    await deletion.getByRole('button', { name: 'Deny with a reason' }).click()
    await deletion.getByLabel('Reason, for the agent to read').fill('It is still needed.')
    await opened.expectAccessible()
    await deletion.getByRole('button', { name: 'Deny with this reason' }).click()
    await deletion.waitFor({ state: 'detached' })
    const change = page.getByRole('group', { name: 'Approval of write_file' })
    await change.getByRole('button', { name: 'Always in this session' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Approve always' }).click()
    await page.getByText('Nothing is waiting for you').waitFor()
    await opened.expectAccessible()
    const command = (await page.getByRole('group', { name: 'Command' }).textContent()) ?? ''
    const [, body = ''] = /-d '(.+)'$/s.exec(command) ?? []
    expect((await call(api, 'POST', '/v1/agents', JSON.parse(body))).status).toBe(201)
    const events = await waitUntilIdle(api, id)
    expect(events.filter(({ type }) => type === 'tool.call_requested')).toHaveLength(1)
    const errors = events.flatMap(({ type, data }) => (type === 'tool.completed' && data.error ? [data.error] : []))
    expect(errors).toEqual(['The user did not approve this call: It is still needed.'])
    await page.goto(`${api.url}/console#/sessions/${id}`)
    await page.getByRole('button', { name: '1 tool does not ask' }).click()
    await page.getByRole('menuitem', { name: 'Ask again before write_file' }).click()
    await page.getByText('write_file asks again.').waitFor()
    expect((await call(api, 'GET', `/v1/sessions/${id}`)).body.approved_tools).toEqual([])
    opened.expectNoComplaints()
    await opened.close()
  })

  it('decides by a key that is pressed twice, and notifies of what comes while it is hidden', async () => {
    const api = await newOrganization()
    const create = (title: string) =>
      createScriptedSession(
        api,
        [{ tool_calls: [{ name: 'add', arguments: { a: 6, b: 7 } }] }, { text: 'Fine.' }],
        { name: 'Adder', capabilities: ['test_math'], tools: [guardedTool('add')] },
        { title },
      )
    const [first, second, third] = [await create('First'), await create('Second'), await create('Third')]
    for (const id of [first, second]) await postAndAsk(api, id)
    const opened = await openConsole(api.url, { organization: api.id, at: '#/inbox' })
    const { page } = opened
    const approve = page.getByRole('button', { name: 'Approve' })
    // Nothing around it moves any more.
    await approve.nth(1).click({ trial: true })
    await page.mouse.move(0, 0)
    for (const key of ['a', 'a']) await page.keyboard.press(key)
    expect(await page.getByText('Press a again').count()).toBe(0)
    for (const key of ['j', 'j', 'k', 'a']) await page.keyboard.press(key)
    await page.getByText('Press a again to approve').waitFor()
    await approve.first().and(page.locator('[aria-describedby]')).waitFor()
    // Other keys approve nothing.
    for (const key of ['Space', 'Enter', 'd']) await page.keyboard.press(key)
    await page.getByText('Press d again to deny').waitFor()
    await page.keyboard.press('a')
    await page.keyboard.press('a')
    await waitUntilIdle(api, first)
    await page.getByRole('heading', { name: 'First' }).waitFor({ state: 'detached' })
    expect(await resultsOf(api, first)).toEqual([null])
    await approve.click({ trial: true })
    await page.mouse.move(0, 0)
    for (const key of ['j', 'd', 'd']) await page.keyboard.press(key)
    await waitUntilIdle(api, second)
    expect(await resultsOf(api, second)).toEqual(['The user did not approve this call.'])

    await page.context().grantPermissions(['notifications'])
    await page.getByRole('button', { name: 'Notify me' }).click()
    await page.getByRole('button', { name: 'Stop notifying me' }).waitFor()
    await page.evaluate(WATCH_NOTIFICATIONS)
    // A count, not the list of the inbox itself.
    const isCount = (url: string) => url.includes('/v1/turns?') && !url.includes('order=')
    const looked = page.waitForResponse((response) => isCount(response.url()))
    await page.evaluate(HIDE)
    await looked
    await postAndAsk(api, third)
    await page.evaluate(HIDE)
    await waitFor(async () => (await page.evaluate('notified.length')) === 1, 'the notification')
    expect(await page.evaluate('notified')).toEqual([['Third', 'Adder is waiting for you']])
    await page.evaluate('last.onclick()')
    await page.getByRole('group', { name: 'Approval of add' }).waitFor()
    expect(page.url()).toContain(third)
    opened.expectNoComplaints()
    await opened.close()
  })
})

const resultsOf = async (api: Organization, id: string): Promise<unknown[]> =>
  (await listEvents(api, id)).flatMap(({ type, data }) => (type === 'tool.completed' ? [data.error] : []))

/** Moves the cards by a line, and waits until they cannot be used. */
const MOVE_CARDS = `new Promise((resolve) => {
  const cards = document.querySelector('.inbox')
  const observer = new MutationObserver(() => cards.querySelector('[inert]') && resolve())
  observer.observe(cards, { subtree: true, attributeFilter: ['inert'] })
  cards.before(Object.assign(document.createElement('p'), { textContent: 'A line' }))
})`

/** Hides the page from its user. */
const HIDE = `Object.defineProperty(document, 'hidden', { value: true, configurable: true })
document.dispatchEvent(new Event('visibilitychange'))`

/** Keeps what is notified of. */
const WATCH_NOTIFICATIONS = `globalThis.notified = []
globalThis.Notification = class extends Notification {
  constructor(title, options) {
    super(title, options)
    globalThis.last = this
    globalThis.notified.push([title, options.body])
  }
}`
