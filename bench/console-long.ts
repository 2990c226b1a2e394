import pg from 'pg'
import type { Browser, Page } from 'playwright-core'
import type { RunningServices } from '../dev/services/index.ts'
import { fromId } from '../domain/kit/ids.ts'
import { openLongSession } from './long-session.ts'
import { goal, print } from './report.ts'

const MESSAGES = 10_000
/** Number of requests for earlier messages, 20 turns each. */
const PAGES = 25
const LINES = 100_000
const MAX_OPEN_MS = 1000
/** A page that draws nothing for longer than this seems to stand still. */
const MAX_STALL_MS = 200

/**
 * Opens a session of 10,000 messages and goes back in it, and shows a result of 100,000 lines whole. Prints how long both
 * take, and the longest time in which the page did nothing else.
 */
export async function benchLongSessions(services: RunningServices, url: string, browser: Browser): Promise<boolean> {
  const pool = new pg.Pool({ connectionString: services.databaseUrl, max: 1 })
  const page = await browser.newPage()
  try {
    const session = await openLongSession(url, pool, MESSAGES)
    session.close()
    const openedAt = performance.now()
    await page.goto(`${url}/console#/sessions/${session.id}`)
    await page.locator('.turn').nth(19).waitFor()
    const openMs = performance.now() - openedAt
    await watchStalls(page)
    const earlierMs = await goBack(page)
    const backMs = await longestStall(page)
    await page.getByLabel('Message', { exact: true }).pressSequentially('The quick brown fox')
    const typingMs = await longestStall(page)
    print(
      `${MESSAGES} messages: the newest after ${openMs.toFixed(0)} ms, 20 earlier turns after ${earlierMs.toFixed(0)} ms`,
    )
    print(`longest stall: ${backMs.toFixed(0)} ms going back ${PAGES} times, ${typingMs.toFixed(0)} ms while writing`)
    const wholeMs = await showWhole(page, pool, url, session.id)
    const resultMs = await longestStall(page)
    print(`a result of ${LINES} lines: whole after ${wholeMs.toFixed(0)} ms, longest stall ${resultMs.toFixed(0)} ms`)
    const stallMs = Math.max(backMs, typingMs, resultMs)
    return [
      goal(openMs <= MAX_OPEN_MS, `${MESSAGES} messages within ${MAX_OPEN_MS} ms: ${openMs.toFixed(0)} ms`),
      goal(stallMs <= MAX_STALL_MS, `no stall over ${MAX_STALL_MS} ms: ${stallMs.toFixed(0)} ms`),
    ].every(Boolean)
  } finally {
    await page.close()
    await pool.end()
  }
}

/** Asks for earlier messages again and again. Returns how long the last time took. */
async function goBack(page: Page): Promise<number> {
  let tookMs = 0
  for (let times = 1; times <= PAGES; times++) {
    const startedAt = performance.now()
    await page.getByRole('button', { name: 'Earlier messages' }).click()
    await page
      .locator('.turn')
      .nth(20 * times + 19)
      .waitFor({ state: 'attached' })
    tookMs = performance.now() - startedAt
  }
  return tookMs
}

/** Gives the newest turn a tool's result of many lines, and shows all of it. Returns how long that took. */
async function showWhole(page: Page, pool: pg.Pool, url: string, id: string): Promise<number> {
  const lines = Array.from({ length: LINES }, (_, line) => `line ${line + 1}`).join('\n')
  // Turns of the bench call no tools, so an answer's end is rewritten as a call's end.
  await pool.query(
    `UPDATE events SET type = 'tool.completed', data = $2 WHERE (session_id, sequence) = (
      SELECT session_id, sequence FROM events WHERE session_id = $1 AND type = 'output.message.completed'
      ORDER BY sequence DESC LIMIT 1)`,
    [
      fromId(id),
      JSON.stringify({
        tool_call_id: 'call_1',
        tool_name: 'print',
        success: true,
        status: 'success',
        result: [{ type: 'text', text: lines }],
        error: null,
        duration_ms: 1,
      }),
    ],
  )
  await page.goto(`${url}/console#/sessions`)
  await page.goto(`${url}/console#/sessions/${id}`)
  await page.locator('summary', { hasText: 'print' }).click()
  await longestStall(page)
  const startedAt = performance.now()
  await page.getByRole('button', { name: 'Show all' }).click()
  await page.getByRole('button', { name: 'Show less' }).waitFor()
  return performance.now() - startedAt
}

type Watching = { stallMs: number; requestAnimationFrame(run: (time: number) => void): void }

/** Has a page measure the time between its frames. */
const watchStalls = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const window = globalThis as unknown as Watching
    window.stallMs = 0
    let last = performance.now()
    const take = (time: number) => {
      window.stallMs = Math.max(window.stallMs, time - last)
      last = time
      window.requestAnimationFrame(take)
    }
    window.requestAnimationFrame(take)
  })

/** Returns the longest time between two frames since the last call, in milliseconds. */
const longestStall = (page: Page): Promise<number> =>
  page.evaluate(() => {
    const window = globalThis as unknown as Watching
    const { stallMs } = window
    window.stallMs = 0
    return stallMs
  })
