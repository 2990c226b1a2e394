import type { Locator, Page } from 'playwright-core'
import { describePages } from '../support/chromium.ts'
import { closeBrowser, openConsole } from '../support/console.ts'
import { newOrganization } from '../support/shared/service.ts'

afterAll(closeBrowser)

const SCRIPT = [
  { tool_calls: [{ name: 'write_file', arguments: { path: '/hello.txt', content: 'Hello' } }] },
  { text: 'It is written.' },
]
/** More than any page has. */
const MOST_STOPS = 200

/** Presses Tab until an element has the focus. Each stop on the way must show that it has it. */
async function tabTo(page: Page, element: Locator): Promise<void> {
  await element.first().waitFor()
  const focused = element.and(page.locator(':focus'))
  for (let stops = 0; stops < MOST_STOPS; stops++) {
    await page.keyboard.press('Tab')
    const [outline, stop] = await page.evaluate<string[]>(
      '[getComputedStyle(document.activeElement).outlineStyle, document.activeElement.outerHTML.slice(0, 200)]',
    )
    expect([stop, outline]).toEqual([stop, 'solid'])
    if ((await focused.count()) > 0) return
  }
  throw new Error(`Tab does not lead to ${element}`)
}

/** Goes down in the choice that has the focus, until a text is chosen. */
async function pick(page: Page, text: string): Promise<void> {
  const chosen = page.locator(':focus').locator('option:checked')
  for (let steps = 0; (await chosen.textContent()) !== text; steps++) {
    if (steps > MOST_STOPS) throw new Error(`the keys do not lead to ${text}`)
    await page.keyboard.press('ArrowDown')
  }
}

describePages('the keyboard alone', () => {
  it('creates an agent, talks to it, approves its call by a key pressed twice, and finds the run', async () => {
    const api = await newOrganization()
    const opened = await openConsole(api.url, { look: 'wide dark', organization: api.id })
    const { page } = opened
    const heading = (name: string) => page.getByRole('heading', { name, exact: true })
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key)
    }
    const use = async (role: 'link' | 'button', name: string, key = 'Enter') => {
      await tabTo(page, page.getByRole(role, { name, exact: true }))
      await press(key)
    }
    const field = (name: string) => tabTo(page, page.getByLabel(name, { exact: true }))
    await heading('Agents').and(page.locator(':focus')).waitFor()
    // The first element of the page, though a view begins at its heading. It leads past all places.
    await page.evaluate('document.querySelector("a").focus()')
    await tabTo(page, page.getByRole('link', { name: 'Health', exact: true }))
    await page.evaluate('document.querySelector("a").focus()')
    expect((await page.locator(':focus').boundingBox())?.height).toBeGreaterThan(20)
    await press('Enter')
    expect(await page.locator(':focus').textContent()).toBe('Agents')

    await use('link', 'Make your own')
    await heading('New agent').waitFor()
    await field('Name')
    await page.keyboard.type('Writer')
    await field('Prompt')
    await page.keyboard.insertText(`\`\`\`llmsim\n${JSON.stringify(SCRIPT)}\n\`\`\``)
    await field('Model')
    await pick(page, 'Simulator: script')
    await field('File system')
    await press('Space')
    await field('Calls of write_file')
    await pick(page, 'Asks first')
    await use('button', 'Create', 'Space')
    await heading('Writer').waitFor()
    await use('button', 'Start a session')
    await page.getByText('No messages yet.').waitFor()
    await page.locator('#message:focus').waitFor()
    await page.keyboard.type('Write it.')
    await press('Enter')
    await page.getByRole('button', { name: 'Approve' }).waitFor()

    // Out of the entry, in which g and i are letters.
    await press('Escape', 'g', 'i')
    await page.locator(':not([inert]) > .decide').waitFor()
    await press('j', 'a')
    await page.getByText('Press a again to approve').waitFor()
    await opened.expectAccessible()
    // The windows of that have moved the card, which takes no keys until it stands still.
    await page.getByRole('button', { name: 'Approve' }).click({ trial: true })
    await press('a', 'a')
    await page.getByText('Nothing is waiting for you').waitFor()

    await press('Control+k')
    await page.getByRole('combobox', { name: 'Search' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.type('runs')
    await page.getByRole('option', { name: 'Runs', exact: true, selected: true }).waitFor()
    await press('Enter')
    await heading('Runs').waitFor()
    await use('link', 'Write it.')
    await heading('Write it.').waitFor()
    await page.getByText('It is written.').waitFor()
    opened.expectNoComplaints()
    await opened.close()
  })
})
