import { readFile } from 'node:fs/promises'
import { freePorts } from '../../dev/services/index.ts'
import { describePages } from '../support/chromium.ts'
import { type ConsoleOptions, type ConsolePage, closeBrowser, looks, openConsole } from '../support/console.ts'
import { call, createScriptedSession, createSession, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { paste } from '../support/paste.ts'
import { killProcesses, startApiProcess } from '../support/process.ts'
import { withService } from '../support/service.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { clientTool, guardedTool, listTurns, MUTE, post } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})
const opened: ConsolePage[] = []
afterEach(async () => {
  for (const console of opened.splice(0)) {
    console.expectNoComplaints()
    await console.close()
  }
})
afterAll(async () => {
  await closeBrowser()
  await killProcesses()
})

async function openSession(id: string, options: ConsoleOptions = {}): Promise<ConsolePage> {
  const console = await openConsole(api.url, { organization: api.id, at: `#/sessions/${id}`, ...options })
  opened.push(console)
  return console
}

const conversation = ({ page }: ConsolePage) => page.getByRole('log').first()

const textOf = async (console: ConsolePage): Promise<string> => (await conversation(console).textContent()) ?? ''

async function say({ page }: ConsolePage, text: string): Promise<void> {
  const box = page.getByLabel('Message', { exact: true })
  await box.fill(text)
  await page.keyboard.press('Enter')
  // Until the message has been answered, another one is not taken.
  await waitFor(async () => (await box.inputValue()) === '', 'the message to be sent')
}

const COLOURS = [{ value: 'dark red', label: 'Dark red' }, 'blue']

const PAINT = {
  type: 'object',
  properties: {
    finish: {
      oneOf: [
        { const: 'matt', title: 'Matt' },
        { const: 'gloss', title: 'Gloss' },
      ],
    },
    coats: { type: 'string', enum: ['one', 'three'], maxLength: 3 },
    wall_colour: { type: 'string' },
  },
  required: ['wall_colour'],
}

/** Pixels from what is seen to the end of the page. */
const FROM_END = 'Math.floor(document.documentElement.scrollHeight - innerHeight - document.documentElement.scrollTop)'

describePages('a conversation', () => {
  it.each(looks('wide dark', 'narrow light'))(
    'shows thinking, tools and text as they come, in a %s window',
    async (look) => {
      const id = await createScriptedSession(
        api,
        [
          {
            thinking: 'I need a tool. '.repeat(10),
            text: 'One moment.',
            tool_calls: [
              { name: 'add', arguments: { a: 20, b: 22 } },
              { name: 'write_file', arguments: { path: '/sum.md', content: 'The sum\nis **42**.' } },
            ],
            tokens_per_second: 15,
          },
          { text: 'It is **42**, as `add` says. '.repeat(20), tokens_per_second: 40 },
        ],
        { capabilities: [{ ref: 'test_math' }, { ref: 'session_file_system' }] },
      )
      const [one, other] = [await openSession(id, { look }), await openSession(id)]
      const watch = async ({ page }: ConsolePage) => {
        await page.getByText('I need a tool.').waitFor()
        await page.locator('summary', { hasText: 'Write a file' }).filter({ hasText: 'Done' }).waitFor()
        // It still grows.
        await page.getByRole('main').filter({ hasText: 'It is 42' }).filter({ hasText: 'Working…' }).waitFor()
        await page.getByText(/tokens/).waitFor()
      }
      for (const { page } of [one, other]) await page.getByText('No messages yet.').waitFor()
      // They watch before there is anything, because the thinking is folded once it is complete.
      await Promise.all([...[one, other].map(watch), say(one, 'What is 20 + 22?')])
      const calls = one.page.locator('.call summary')
      for (const call of await calls.all()) await call.getByText(/^(Add|Write a file)$/).click()
      await one.page.getByRole('group', { name: 'Arguments of add' }).getByText('20').waitFor()
      await one.page.getByRole('group', { name: 'Arguments of write_file' }).getByText('is **42**.').waitFor()
      await one.expectAccessible()
      for (const call of await calls.all()) await call.getByText(/^(Add|Write a file)$/).click()
      // A closed call keeps its content for a moment, hidden.
      const written = one.page.getByRole('group', { name: 'Arguments of write_file', includeHidden: true })
      await written.waitFor({ state: 'detached' })
      expect(await textOf(one)).toBe(await textOf(other))
      await other.page.reload()
      await other.page.getByText(/tokens/).waitFor()
      expect(await textOf(other)).toBe(await textOf(one))
      // The file of a call is a link.
      await other.page.getByRole('link', { name: '/sum.md' }).click()
      await other.page.getByText('is **42**.').waitFor()
    },
  )

  it('shows an attempt that is made again once', async () => {
    const text = 'The first half of the answer, and the second half of it.'
    const error = { status: 529, message: 'overloaded', times: 1, after_text: true }
    const id = await createScriptedSession(api, [{ text, error, tokens_per_second: 100 }])
    const shown = await openSession(id)
    await say(shown, 'Go')
    await shown.page.getByText('Retried once: llmsim answered 529').waitFor()
    await shown.page.getByText(/tokens/).waitFor()
    expect((await textOf(shown)).split('The first half')).toHaveLength(2)
  })

  it('asks a person, and the first of two who answer is heard', async () => {
    const id = await createScriptedSession(
      api,
      [
        {
          tool_calls: [
            { name: 'ask_user', arguments: { question: 'Which <b>colour</b>?', options: COLOURS, room: 'Hall' } },
            { name: 'multiply', arguments: { a: 6, b: 7 } },
          ],
        },
        { text: 'Painted.' },
      ],
      { capabilities: [{ ref: 'test_math' }], tools: [clientTool('ask_user'), guardedTool('multiply')] },
    )
    const [one, other] = [await openSession(id), await openSession(id, { look: 'narrow dark' })]
    await say(one, 'Paint it.')
    for (const { page } of [one, other]) {
      const question = page.getByRole('group', { name: 'Which <b>colour</b>?' })
      await question.getByRole('button', { name: 'Dark red' }).waitFor()
      expect(await question.textContent()).not.toMatch(/question|options|\{/)
      await page.getByRole('button', { name: 'Approve' }).waitFor()
    }
    // Nothing is half behind the bar at the top, which counts as a small target.
    await other.page.evaluate('scrollTo(0, 0)')
    await other.expectAccessible()
    // For developers, the call is there as JSON, and takes JSON or a failure.
    await one.page.getByRole('button', { name: 'JSON' }).first().click()
    await one.page.getByText('"value": "dark red"').waitFor()
    await one.page.getByLabel('Report a failure').check()
    await one.page.getByLabel('What went wrong?').waitFor()
    await one.expectAccessible()
    await one.page.getByRole('button', { name: 'JSON' }).first().click()
    await one.page.getByLabel('Your answer').fill('blue')
    await other.page.getByLabel('Your answer').fill('red')
    await one.page.getByRole('button', { name: 'Answer' }).click()
    await waitFor(async () => (await listTurns(api, id))[0]?.pending_tool_calls.length === 1, 'the first answer')
    // The other has not seen it when the stream is late: what is sent then is refused, and no error is shown.
    const late = other.page.getByRole('button', { name: 'Answer' })
    if (await late.isVisible()) await late.click({ timeout: 1000 }).catch(() => {})
    await late.waitFor({ state: 'detached' })
    // It takes no key until nothing around it has moved for a moment.
    await other.page.getByRole('button', { name: 'Approve' }).click({ trial: true })
    await other.page.getByRole('button', { name: 'Approve' }).focus()
    await other.page.keyboard.press('Enter')
    await other.page.getByRole('button', { name: 'Approve' }).waitFor({ state: 'detached' })
    await waitFor(
      async () => (await other.page.evaluate('document.activeElement.localName')) !== 'body',
      'the focus to stay in the conversation',
    )
    for (const { page } of [one, other]) await page.getByText('Painted.').waitFor()
    const events = await waitUntilIdle(api, id)
    const results = events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data.result[0]?.text)
    expect(results.sort()).toEqual(['"blue"', '{"result":42}'])
    expect(await other.page.getByRole('alert').count()).toBe(0)
  })

  it('approves nothing by a key or a click that was meant for something else', async () => {
    const calls = ['add', 'multiply'].map((name) => ({ id: name, name, arguments: { a: 6, b: 7 } }))
    const id = await createScriptedSession(api, [{ tool_calls: calls }, { text: 'Calculated.' }], {
      capabilities: [{ ref: 'test_math' }],
      tools: calls.map(({ name }) => guardedTool(name)),
    })
    const shown = await openSession(id)
    const { page } = shown
    const press = async () => {
      for (const key of ['Enter', 'Space', 'Enter']) await page.keyboard.press(key)
    }
    await say(shown, 'Calculate.')
    await page.getByText('Approve').first().waitFor()
    const approve = page.getByRole('button', { name: 'Approve' })
    await approve.nth(1).click({ trial: true })
    // Who is typing stays in the entry.
    const message = page.getByLabel('Message', { exact: true })
    await page.keyboard.type('actually')
    expect(await message.inputValue()).toBe('actually')
    await message.fill('')
    await page.keyboard.press('Escape')
    await press()
    // Of several calls, no key says which it means.
    for (const key of ['a', 'a', 'd', 'd']) await page.keyboard.press(key)
    expect(await page.evaluate('document.activeElement.localName')).not.toBe('button')
    expect((await listTurns(api, id))[0]?.pending_tool_calls).toHaveLength(2)
    // Nothing comes under the pointer when a call is over.
    const before = await approve.nth(1).boundingBox()
    await approve.first().click()
    await page.getByText('running…').waitFor()
    expect(await approve.boundingBox()).toEqual(before)
    // Of a single call, a key that is pressed twice decides.
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByText('Deny: press twice').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.locator(':not([inert]) > .decide').waitFor()
    await page.keyboard.press('d')
    await page.getByText('Press d again to deny').waitFor()
    // Any other key is between, and a choice expires.
    for (const key of ['a', 'c', 't', 'u', 'a']) await page.keyboard.press(key)
    await page.getByText('Press a again to approve').waitFor()
    await page.locator('.chosen:empty').waitFor({ state: 'attached' })
    expect((await listTurns(api, id))[0]?.pending_tool_calls).toHaveLength(1)
    await page.locator(':not([inert]) > .decide').waitFor()
    for (const key of ['a', 'a']) await page.keyboard.press(key)
    await page.getByText('Calculated.').waitFor()
    expect(await page.getByText('did not approve').count()).toBe(0)
  })

  it('answers the questions of a tool by a form of their schema', async () => {
    const calls = [
      { id: 'a', name: 'elicit', arguments: { times: 2 } },
      { id: 'b', name: 'ask_user', arguments: { question: 'How is it to be painted?', schema: PAINT } },
    ]
    const id = await createScriptedSession(api, [{ tool_calls: calls }, { text: 'Done.' }], {
      capabilities: [{ ref: 'lab' }, { ref: 'ask_user' }],
    })
    const shown = await openSession(id, { look: 'narrow dark' })
    const { page } = shown
    await say(shown, 'Ask me.')
    await page.getByText('Who are you?').waitFor()
    await shown.expectAccessible()
    const paint = page.getByRole('group', { name: 'How is it to be painted?' })
    await paint.getByRole('radio', { name: 'Matt' }).check()
    await paint.getByLabel('Wall colour').fill('blue')
    await paint.getByRole('radio', { name: 'three' }).check()
    await paint.getByRole('button', { name: 'Answer', exact: true }).click()
    const coats = paint.getByRole('radiogroup', { name: 'Coats' })
    await coats.and(page.locator('[aria-invalid]')).locator('input:focus').waitFor()
    await shown.expectAccessible()
    await coats.getByRole('radio', { name: 'No answer' }).check()
    await paint.getByRole('button', { name: 'Answer', exact: true }).click()
    await paint.waitFor({ state: 'detached' })
    await page.getByLabel('Name', { exact: true }).fill('Ada')
    await page.getByRole('button', { name: 'Answer', exact: true }).click()
    // The second time it asks two questions at once.
    for (let left = 2; left > 0; left--) {
      await page
        .getByRole('button', { name: 'Decline' })
        .nth(left - 1)
        .waitFor()
      await page.getByRole('button', { name: 'Decline' }).first().click()
    }
    await page.getByText('Done.').waitFor()
    const events = await waitUntilIdle(api, id)
    const answers = events.filter(({ data }) => data.tool_name === 'mcp_elicitation')
    expect(answers.map(({ data }) => JSON.parse(data.result[0].text))).toEqual([
      { action: 'accept', content: { finish: 'matt', wall_colour: 'blue' } },
      { action: 'accept', content: { name: 'Ada' } },
      { action: 'decline' },
      { action: 'decline' },
    ])
  })

  it('queues messages, takes them out of the queue, interrupts and cancels', async () => {
    const id = await createScriptedSession(api, [MUTE, MUTE, { text: 'Third.' }])
    const shown = await openSession(id)
    const { page } = shown
    await say(shown, 'First')
    await page.getByText('Working…').waitFor()
    await say(shown, 'Second')
    await page.getByText('Queued.').waitFor()
    await page.getByRole('button', { name: 'Remove from the queue' }).click()
    await page.getByText('Queued.').waitFor({ state: 'detached' })
    // A message that joins the running answer is in no queue.
    await page.getByLabel('While an answer is running').selectOption('Add to the running answer')
    await say(shown, 'Joined')
    await conversation(shown).getByText('Joined').waitFor()
    expect(await page.getByText('Queued.').count()).toBe(0)
    await say(shown, 'Dropped')
    await page.getByText('Queued.').waitFor()
    // What an interruption drops is said before it and after it.
    await page.getByLabel('While an answer is running').selectOption('Stop and send now (drops 1 queued message)')
    await say(shown, 'Instead')
    await page.getByText('Stopped. 1 queued message was dropped.').waitFor()
    await waitFor(async () => (await listTurns(api, id)).length === 4, 'the message that interrupts')
    // Three are drawn, so what works and can be stopped is the fourth.
    await page
      .getByText(/^Cancelled/)
      .nth(2)
      .waitFor()
    await page.getByText('Working…').waitFor()
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await page.getByText('Working…').waitFor({ state: 'detached' })
    await waitUntilIdle(api, id)
    const turns = await listTurns(api, id)
    expect(turns.map(({ status }) => status)).toEqual(Array(4).fill('cancelled'))
    expect(await page.getByText(/^Cancelled/).count()).toBe(4)
  })

  it('sends a picture, and shows it', async () => {
    const echo = (await call(api, 'GET', '/v1/llm-models')).body.data.find(
      ({ model_id }: { model_id: string }) => model_id === 'llmsim-echo',
    )
    const shown = await openSession(await createSession(api, { default_model_id: echo.id }))
    const { page } = shown
    const picture = await page.screenshot({ clip: { x: 0, y: 0, width: 40, height: 30 } })
    await page.getByLabel('Add images').setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: picture })
    await page.getByText('a.png').waitFor()
    await page.getByLabel('Message', { exact: true }).evaluate(paste, picture.toString('base64'))
    await page.getByText('pasted.png').waitFor()
    await page.getByRole('button', { name: 'Remove pasted.png' }).click()
    await page.getByText('pasted.png').waitFor({ state: 'detached' })
    await say(shown, 'What is it?')
    await page.getByText('[image image/png 40x30]').waitFor()
    await page.getByRole('img', { name: 'a.png' }).waitFor()
    // A message that is sent during an upload has the picture.
    const upload = Promise.withResolvers<void>()
    await page.route('**/v1/images*', async (route) => {
      await upload.promise
      await route.continue()
    })
    await page.getByLabel('Message', { exact: true }).evaluate(paste, picture.toString('base64'))
    await page.getByLabel('Message', { exact: true }).fill('And this?')
    await page.keyboard.press('Enter')
    upload.resolve()
    await page.getByRole('img', { name: 'pasted.png' }).waitFor()
    await page.unroute('**/v1/images*')
    await shown.expectAccessible()
  })

  it('shows hostile answers as texts', async () => {
    const hostile = await readFile('test/console/hostile.md', 'utf8')
    const id = await createScriptedSession(api, [{ text: hostile }])
    const shown = await openSession(id)
    const { page } = shown
    const foreign: string[] = []
    page.on('request', (request) => {
      if (!request.url().startsWith(api.url) && !/^(data|blob):/.test(request.url())) foreign.push(request.url())
    })
    await say(shown, 'Attack')
    await page.getByText(/tokens/).waitFor()
    expect(await page.title()).not.toBe('owned')
    // The console's own icons are the only drawings.
    const foreigners = 'script, img, iframe, style, form, svg:not(.icon), [onerror], [style]'
    expect(await conversation(shown).locator(foreigners).count()).toBe(0)
    expect(
      await conversation(shown)
        .getByRole('checkbox', { name: /done|to do/ })
        .count(),
    ).toBe(2)
    const targets = await conversation(shown)
      .locator('.markdown a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')))
    expect(targets.filter((target) => target !== null)).toEqual([
      'https://example.com/good',
      'https://tracker.example/pixel.png',
    ])
    const text = await textOf(shown)
    expect(text).toContain('<script>document.title = "owned"</script>')
    expect(text).toContain('⟨U+202E⟩')
    expect(text).not.toContain('\u202e')
    expect(text).not.toContain('\u001b')
    expect(foreign).toEqual([])
    await shown.expectAccessible()
  })

  it('begins with the newest turns, and loads earlier ones above what is read', async () => {
    const count = 25
    const steps = Array.from({ length: count + 1 }, (_, index) => ({ text: `Answer ${index}. ${'More. '.repeat(50)}` }))
    const id = await createScriptedSession(api, steps)
    // Each is answered before the next: answers that come after later messages are shown without their own message.
    for (let turn = 0; turn < count; turn++) {
      const { body } = await call(api, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage(`Message ${turn}`))
      expect(body.output.content).toHaveLength(1)
    }
    const shown = await openSession(id)
    const { page } = shown
    await page.getByText('Answer 24.').waitFor()
    expect(await page.getByText('Message 4', { exact: true }).count()).toBe(0)
    await page.evaluate('scrollTo(0, 0)')
    const topOf = async () => (await page.getByText('Message 5', { exact: true }).boundingBox())?.y
    const before = await topOf()
    await page.getByRole('button', { name: 'Earlier messages' }).click()
    await conversation(shown).getByText('Message 0', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Earlier messages' }).waitFor({ state: 'detached' })
    const isThere = async () => Math.abs(((await topOf()) ?? 0) - (before ?? 0)) < 100
    await waitFor(isThere, 'the place of what was read')
    // Also after something else was looked at.
    const timeline = await page.getByRole('link', { name: 'Timeline' }).first().getAttribute('href')
    await page.evaluate((to) => {
      Object.assign(globalThis, { location: to })
    }, timeline)
    await page.getByRole('link', { name: /^Turn / }).waitFor()
    await page.goBack()
    await page.getByText('Message 5', { exact: true }).waitFor()
    await waitFor(isThere, 'the place of what was read before')
    await say(shown, 'The last')
    await page.getByText('Answer 25.').waitFor()
    await waitFor(async () => (await page.evaluate(FROM_END)) === 0, 'the end of the page')
  })

  it('says that a session was deleted while it was open', async () => {
    const id = await createScriptedSession(api, [{ text: 'Hello' }])
    const shown = await openSession(id)
    await say(shown, 'Hi')
    await shown.page.getByText(/tokens/).waitFor()
    await call(api, 'DELETE', `/v1/sessions/${id}`)
    await shown.page.getByText('This session was deleted.').waitFor()
  })

  it('keeps what is being written while something else is looked at, or is sent', async () => {
    const id = await createScriptedSession(api, [{ text: 'Hello' }])
    const shown = await openSession(id)
    const { page } = shown
    const box = page.getByLabel('Message', { exact: true })
    await box.fill('A draft')
    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByText('No files yet.').waitFor()
    await page.getByRole('link', { name: 'Conversation' }).click()
    expect(await box.inputValue()).toBe('A draft')
    // The answer to a message is late.
    const pressed = Promise.withResolvers<void>()
    await page.route('**/messages', async (route) => {
      await pressed.promise
      await box.fill('The next one')
      await route.continue()
    })
    await box.press('Enter')
    await box.press('Enter')
    pressed.resolve()
    await page.getByText(/tokens/).waitFor()
    expect(await box.inputValue()).toBe('The next one')
    expect(await listTurns(api, id)).toHaveLength(1)
  })

  it('says once that there is no such session', async () => {
    for (const id of ['session_1', `session_${'0'.repeat(32)}`]) {
      const { page } = await openSession(id)
      await page.getByRole('alert').first().waitFor()
      await page.getByRole('link', { name: 'Storage' }).waitFor({ state: 'detached' })
      expect(await page.getByRole('main').textContent()).toMatch(
        /^SessionsSession(session_id: must be .*|Session not found)$/,
      )
    }
  })

  it('opens by itself once the service is there', async () => {
    const id = await createScriptedSession(api, [{ text: 'Hello' }])
    await post(api, id)
    await waitUntilIdle(api, id)
    const shown = await openSession(id)
    const { page } = shown
    await page.getByText('Hello').waitFor()
    await page.route('**/v1/**', (route) => route.abort())
    await page.reload()
    await page.getByText('The service cannot be reached.').first().waitFor()
    await page.unroute('**/v1/**')
    await page.getByText('Hello').waitFor()
    await page.getByText('The service cannot be reached.').first().waitFor({ state: 'detached' })
  })

  it('goes on by itself after the network was cut', async () => {
    const id = await createScriptedSession(api, [{ text: 'word '.repeat(60), tokens_per_second: 40 }])
    const shown = await openSession(id)
    const { page } = shown
    await say(shown, 'Go')
    await page.getByText('word word').waitFor()
    await page.context().setOffline(true)
    await waitUntilIdle(api, id)
    await page.context().setOffline(false)
    await page.getByText(/tokens/).waitFor()
    expect((await textOf(shown)).split('word')).toHaveLength(61)
  })

  it('goes on by itself after the API was killed and started again in mid-answer', async () => {
    await withService({}, async (service) => {
      const [port = 0] = await freePorts(1)
      const start = () => startApiProcess(service, 'api/main.ts', { PORT: `${port}` })
      const first = await start()
      const id = await createScriptedSession(first.url, [{ text: 'word '.repeat(60), tokens_per_second: 20 }])
      const shown = await openConsole(first.url, { at: `#/sessions/${id}` })
      opened.push(shown)
      await post(first.url, id)
      await shown.page.getByText('word word').waitFor()
      await first.kill()
      await shown.page.getByText('Reconnecting…').waitFor()
      await start()
      await shown.page.getByText(/tokens/).waitFor({ timeout: 60_000 })
      expect((await textOf(shown)).split('word')).toHaveLength(61)
      expect(await shown.page.getByText('Reconnecting…').count()).toBe(0)
    })
  })
})
