import { describePages } from '../support/chromium.ts'
import { closeBrowser, openConsole } from '../support/console.ts'
import { createScriptedSession, waitUntilIdle } from '../support/http.ts'
import { newOrganization } from '../support/shared/service.ts'
import { clientTool, guardedTool, postAndAsk, submit } from '../support/turns.ts'

afterAll(closeBrowser)

describePages('the inbox', () => {
  it.each(['wide', 'narrow'] as const)('has what waits in all sessions, newest first, in a %s window', async (size) => {
    const api = await newOrganization()
    const ask = (question: string) => [
      { tool_calls: [{ name: 'ask_user', arguments: { question } }] },
      { text: 'Fine.' },
    ]
    const create = (question: string, title: string) =>
      createScriptedSession(api, ask(question), { tools: [clientTool('ask_user')] }, { title })
    const [door, roof] = [await create('Which colour?', 'The door'), await create('<b>Slate</b>?', 'The roof')]
    const { pending_tool_calls } = await postAndAsk(api, door)
    await postAndAsk(api, roof)
    const opened = await openConsole(api.url, { size, organization: api.id, at: '#/inbox' })
    const { page } = opened
    const titles = page.getByRole('heading', { level: 2 })
    await page.getByText('Which colour?').waitFor()
    await page.getByText('<b>Slate</b>?').waitFor()
    expect(await titles.allTextContents()).toEqual(['The roof', 'The door'])
    await opened.expectAccessible()
    await submit(api, door, [{ tool_call_id: pending_tool_calls[0].id, result: 'blue' }])
    await waitUntilIdle(api, door)
    await page.getByText('Which colour?').waitFor({ state: 'detached' })
    expect(await titles.allTextContents()).toEqual(['The roof'])
    opened.expectNoComplaints()
    await opened.close()
  })

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
    const titles = page.getByRole('heading', { level: 2 })
    expect(await titles.allTextContents()).toEqual(['subtract', 'add'])
    await news.click()
    expect(await titles.allTextContents()).toEqual(['multiply', 'add'])
    await opened.expectAccessible()
    opened.expectNoComplaints()
    await opened.close()
  })
})
