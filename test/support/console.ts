import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { startBrowser } from '../../dev/chromium.ts'
import { isSoak } from './counts.ts'
import { expectRoom } from './layout.ts'

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
/** WCAG 2.2 AA, and what axe counts as good practice. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** Rules whose findings change with the colours and the width. */
const RULES_OF_LOOKS = ['color-contrast', 'target-size', 'scrollable-region-focusable']
/** Windows: of a large screen, of a notebook and of a phone. */
const SIZES = {
  wide: { width: 1440, height: 900 },
  middle: { width: 1280, height: 800 },
  narrow: { width: 390, height: 844 },
}

const THEMES = ['light', 'dark'] as const
type Size = keyof typeof SIZES
type Theme = (typeof THEMES)[number]
/** A window and its colours. */
export type Look = `${Size} ${Theme}`

/** Looks in which a path is walked: some of the six, so that the paths have all of them, or all in a soak run. */
export const looks = (...some: Look[]): Look[] =>
  isSoak ? Object.keys(SIZES).flatMap((size) => THEMES.map((theme) => `${size as Size} ${theme}` as const)) : some

export type ConsolePage = {
  page: Page
  /** Throws if the page complained: an error in its script, or something that its Content-Security-Policy forbids. */
  expectNoComplaints(): void
  /** Throws if axe finds violations of WCAG 2.2 AA on the page, in either theme, or something has no room in any window. */
  expectAccessible(): Promise<void>
  /** Agrees to the question that the page asks, by the name of its button. Returns the question. */
  agree(action: string): Promise<string>
  /** Takes an action on a thing in a list, by its menu. */
  choose(name: string, action: string): Promise<void>
  /** Gives the page back. */
  close(): Promise<void>
}

export type ConsoleOptions = {
  look?: Look
  /** Place in the console, such as `#/agents`. */
  at?: string
  /** Id of the organization to show, for a user with several. */
  organization?: string
  /** Starts a new page. Needed by tests of downloads: from a used page, one of them did not arrive once. */
  isNew?: boolean
}

let browser: Promise<Browser> | undefined
/** Pages that nobody uses. One is opened again in a quarter of the time that a new one takes. */
const idle: Page[] = []

/** Opens the console of a service, as someone who has not been there before. */
export async function openConsole(url: string, options: ConsoleOptions = {}): Promise<ConsolePage> {
  const { at = '', organization } = options
  return openPage(`${url}/console${at}`, options, async (page) => {
    if (organization === undefined) return
    await page.goto(`${url}/health`)
    await page.evaluate((id) => sessionStorage.setItem('console.organization', id), organization)
  })
}

/** Opens a page in a browser that has not been there before. `prepare` runs first. */
export async function openPage(
  address: string,
  { look = 'middle light', isNew = false }: Pick<ConsoleOptions, 'look' | 'isNew'> = {},
  prepare: (page: Page) => Promise<void> = async () => {},
): Promise<ConsolePage> {
  const page = (isNew ? undefined : idle.pop()) ?? (await newPage())
  const [size, colorScheme] = partsOf(look)
  await page.setViewportSize(size)
  await page.emulateMedia({ colorScheme })
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    // Chromium reports each answer of 4xx as an error of the page.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text())
  })
  await prepare(page)
  await page.goto(address)
  return {
    page,
    expectNoComplaints: () => expect(complaints).toEqual([]),
    expectAccessible: () => expectAccessible(page, colorScheme),
    agree: async (action) => {
      const dialog = page.getByRole('dialog')
      const question = (await dialog.getByRole('heading').textContent()) ?? ''
      await dialog.getByRole('button', { name: action }).click()
      return question
    },
    choose: async (name, action) => {
      await page.getByRole('button', { name: `Actions for ${name}` }).click()
      await page.getByRole('menuitem', { name: action, exact: true }).click()
    },
    close: async () => {
      await leave(page)
      idle.push(page)
    },
  }
}

async function newPage(): Promise<Page> {
  browser ??= startBrowser()
  return (await (await browser).newContext({ locale: 'en-GB' })).newPage()
}

/** Leaves nothing in the page of what was done with it. */
async function leave(page: Page): Promise<void> {
  for (const event of ['pageerror', 'console', 'dialog', 'request']) page.removeAllListeners(event)
  await page.unrouteAll()
  await page.context().setOffline(false)
  await page.context().clearPermissions()
  await page.evaluate('localStorage.clear(), sessionStorage.clear()')
  await page.goto('about:blank')
  await page.context().clearCookies()
  await page.mouse.move(0, 0)
}

const partsOf = (look: Look) => {
  const [size, theme] = look.split(' ') as [Size, Theme]
  return [SIZES[size], theme] as const
}

/** Looks at the page as it is, then in the third window, and then in the window and the theme that differ most. */
async function expectAccessible(page: Page, theme: Theme): Promise<void> {
  const size = page.viewportSize() ?? SIZES.middle
  await expectNoViolations(page, RULES)
  await expectRoom(page)
  const far = size.width < SIZES.middle.width ? SIZES.wide : SIZES.narrow
  const third = Object.values(SIZES).find(({ width }) => width !== size.width && width !== far.width)
  await page.setViewportSize(third ?? SIZES.middle)
  await expectRoom(page)
  await page.setViewportSize(far)
  await page.emulateMedia({ colorScheme: theme === 'dark' ? 'light' : 'dark' })
  await expectRoom(page)
  await expectNoViolations(page, RULES_OF_LOOKS)
  await page.emulateMedia({ colorScheme: theme })
  await page.setViewportSize(size)
}

/** Throws if something on the page has no room in one of the windows. */
export async function expectRoomInAllWindows(page: Page): Promise<void> {
  const size = page.viewportSize() ?? SIZES.middle
  for (const other of Object.values(SIZES)) {
    await page.setViewportSize(other)
    await expectRoom(page)
  }
  await page.setViewportSize(size)
}

/** Script that has the editor's bar stay in view or not. */
const placeBar = (position: string) =>
  `document.querySelector('.editor-bar')?.style.setProperty('position', '${position}')`

async function expectNoViolations(page: Page, runOnly: string[]): Promise<void> {
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(await readFile(AXE, 'utf8'))
  // A bar that stays in view covers half of a target at some places of a page.
  await page.evaluate(placeBar('static'))
  const violations = await page.evaluate(
    async (options) => {
      const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<AxeResults> } }
      const results = await axe.run(options)
      return results.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
    },
    { runOnly, resultTypes: ['violations'], preload: false, selectors: false, elementRef: false },
  )
  await page.evaluate(placeBar(''))
  expect(violations).toEqual([])
}

export async function closeBrowser(): Promise<void> {
  await (await browser)?.close()
  browser = undefined
  idle.length = 0
}
