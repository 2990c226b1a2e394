import { describePages } from '../support/chromium.ts'
import { closeBrowser, looks, openConsole } from '../support/console.ts'
import { call, createScriptedSession, waitFor, waitUntilIdle } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { killProcesses } from '../support/process.ts'
import { withService } from '../support/service.ts'
import { newOrganization } from '../support/shared/service.ts'
import { clientTool, guardedTool, listTurns, postAndAsk, submit } from '../support/turns.ts'
import { createWorkerPool } from '../support/workers.ts'

afterAll(closeBrowser)
afterAll(killProcesses)

const STEPS = [
  {
    text: 'One moment.',
    tool_calls: [
      { name: 'add', arguments: { a: 1, b: 2 } },
      { name: 'ask_user', arguments: {} },
      { name: 'multiply', arguments: { a: 3, b: 2 } },
    ],
    error: { status: 503, message: 'overloaded', times: 1, retry_after_ms: 50 },
  },
  { text: 'Done.' },
]
const AGENT = {
  capabilities: [{ ref: 'test_math' }, { ref: 'agent_instructions' }],
  tools: [clientTool('ask_user'), guardedTool('multiply')],
}

describePages('the timeline of a turn', () => {
  it.each(looks('wide light', 'narrow dark'))(
    'grows, and leads to the events of each span, in a %s window',
    async (look) => {
      const api = await newOrganization()
      const id = await createScriptedSession(api, STEPS, AGENT)
      // Instructions of a file are in the prompt that is sent, and not in what is composed later.
      if (look.startsWith('narrow'))
        await call(api, 'POST', `/v1/sessions/${id}/fs/AGENTS.md`, { content: 'Add slowly.' })
      const turn = await postAndAsk(api, id)
      const opened = await openConsole(api.url, { look, organization: api.id, at: `#/sessions/${id}` })
      const { page } = opened
      await page.getByRole('link', { name: 'Timeline' }).click()
      const spans = page.getByRole('list', { name: 'Spans of the turn' }).getByRole('link')
      await page.getByRole('link', { name: /^ask_user: answer .* so far/ }).waitFor()
      expect(await spans.count()).toBe(9)
      const head = page.locator('.turn-head')
      await head.getByText('Waiting for you').waitFor()
      for (const { id: callId, kind } of turn.pending_tool_calls) {
        await submit(api, id, [{ tool_call_id: callId, result: kind === 'approval' ? { approved: true } : 'blue' }])
      }
      await head.getByText('Completed').waitFor()
      await page.getByText('so far').first().waitFor({ state: 'detached' })
      const names = (await spans.locator('.name').allTextContents()).map((name) => name.trim())
      expect(names).toEqual([
        ...['Turn', 'Queue', 'llmsim-script', 'Model call', 'Attempt 2'],
        ...['Tools', 'Add', 'ask_user: answer', 'Multiply: approval', 'Multiply'],
        'llmsim-script',
      ])
      await page.getByRole('link', { name: /^Turn .* tokens · \$0/ }).waitFor()
      await page.getByRole('link', { name: /^Model .*, failed/ }).click()
      await page.getByRole('heading', { name: 'Model call' }).waitFor()
      await page.getByText('overloaded').first().waitFor()

      // The input of the last call, by role, with what it had read before folded.
      await spans.last().click()
      const chosen = page.getByRole('region', { name: 'Chosen span' })
      await chosen.getByText('One moment.').waitFor()
      await chosen.getByText('1 earlier message').click()
      await chosen
        .getByRole('listitem')
        .filter({ hasText: /^\s*User\s*Go/ })
        .waitFor()
      await chosen.getByText('System prompt', { exact: true }).click()
      await chosen.getByText('Play the script.').waitFor()
      await chosen.getByText(look.startsWith('narrow') ? 'It is not what was sent' : 'As it was sent.').waitFor()
      expect(await chosen.getByRole('term').allTextContents()).toEqual(
        expect.arrayContaining(['Tokens in', 'First token']),
      )
      await chosen.locator('.markdown').getByText('Done.').waitFor()
      await opened.expectAccessible()

      await page.getByRole('link', { name: /^Multiply \d/ }).focus()
      await page.keyboard.press('Enter')
      await chosen.getByRole('group', { name: 'Result of multiply' }).getByText('6').waitFor()
      await chosen.getByRole('button', { name: 'JSON' }).click()
      await page.getByText(/tool\.completed$/).click()
      await page.getByText('"success": true').waitFor()
      // The address names the span.
      await page.reload()
      await page.getByRole('heading', { name: 'Multiply' }).waitFor()
      await waitUntilIdle(api, id)
      opened.expectNoComplaints()
      await opened.close()
    },
  )

  it('shows an attempt that died with its worker, the gap, and who went on, as the conversation does', async () => {
    await withService({ worker: false }, async (service) => {
      const pool = createWorkerPool(service, 1)
      const id = await createScriptedSession(service.url, [
        { text: 'one two three four five six', tokens_per_second: 2 },
      ])
      const opened = await openConsole(service.url, { look: 'middle dark', at: `#/sessions/${id}` })
      const { page } = opened
      await page.getByRole('textbox', { name: 'Message' }).fill('Count')
      await page.keyboard.press('Enter')
      const [turn] = await waitFor(
        async () => (await listTurns(service.url, id)).length > 0 && listTurns(service.url, id),
        'a turn',
      )
      // A process took the message and the first step, and died before any event.
      await service.platform.deps.db.$executeRaw`INSERT INTO turn_steps (turn_id, step, fence, claims, process)
        VALUES (${toUuid(turn?.id)}::uuid, 'reason:1', -999, 1, 999)`
      await pool.fill()
      const early = page.getByText(/^Worker lost\. (?!Process).+ went on after \d/)
      await early.waitFor()
      await page.getByText('one two').waitFor()
      await pool.killAll()
      await service.startWorker()
      const line = page.getByText(/^Worker lost\. Process \d+ went on after \d/)
      await line.waitFor()
      await page.getByText('five six').waitFor()
      await page.reload()
      await line.waitFor()
      await early.waitFor()
      await page.getByRole('link', { name: 'Timeline' }).click()
      await page.getByRole('link', { name: /^Lost attempt .*Worker lost, taken over by .* after \d/ }).waitFor()
      const lost = page.getByRole('link', { name: /^Model call .*Worker lost, taken over by process \d+ after \d/ })
      await lost.waitFor()
      expect(await lost.locator('.lost').count()).toBe(1)
      expect(await lost.locator('.gap').count()).toBe(1)
      expect(await page.locator('.span .lost').count()).toBe(2)
      await lost.click()
      await page.getByRole('region', { name: 'Chosen span' }).getByText('Worker lost, taken over by').waitFor()
      await opened.expectAccessible()
      opened.expectNoComplaints()
      await opened.close()
    })
  })

  it.each([
    ['http://temporal.example:8080/ui/', 'http://temporal.example:8080/ui/namespaces/default/workflows/'],
    ['', undefined],
  ])('leads to the run in the Temporal UI at "%s"', async (TEMPORAL_UI_URL, address) => {
    await withService({ environment: { TEMPORAL_UI_URL } }, async ({ url }) => {
      const id = await createScriptedSession(url, STEPS, AGENT)
      const turn = await postAndAsk(url, id)
      const opened = await openConsole(url, { at: `#/sessions/${id}/turns/${turn.id}` })
      await opened.page.locator('.turn-head').getByText('Waiting for you').waitFor()
      const runs = await opened.page.getByRole('link', { name: 'Open in Temporal' }).all()
      const targets = await Promise.all(runs.map((run) => run.getAttribute('href')))
      expect(targets).toEqual(address === undefined ? [] : [address + turn.id])
      await opened.close()
    })
  })
})
