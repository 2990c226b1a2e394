import { existsSync } from 'node:fs'
import path from 'node:path'
import { type Browser, chromium } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

const MISSING = `there is no Chromium (${NAMES.join(', ')}, or CHROMIUM)`

/** Returns the system's Chromium, or the one that CHROMIUM names. */
function findChromium(): string | undefined {
  const folders = (process.env.PATH ?? '').split(path.delimiter)
  const found = NAMES.flatMap((name) => folders.map((folder) => path.join(folder, name))).find(existsSync)
  return process.env.CHROMIUM ?? found
}

/** Starts the browser. Chromium's own sandbox needs rights that root and containers do not give it. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = findChromium()
  if (executablePath === undefined) throw new Error(`${MISSING}: install it, for example with apt-get`)
  return chromium.launch({ executablePath, args: ['--no-sandbox'] })
}

const isThere = findChromium() !== undefined
if (!isThere) process.stdout.write(`without CI no page is opened: ${MISSING}\n`)

/** Describes tests of pages. Without a browser they are skipped, but in CI they fail: nobody checks what was skipped there. */
export const describePages = isThere || process.env.CI ? describe : describe.skip
