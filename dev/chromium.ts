import { existsSync } from 'node:fs'
import path from 'node:path'
import { type Browser, chromium } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']
export const NO_CHROMIUM = `there is no Chromium (${NAMES.join(', ')}, or CHROMIUM)`

/** Returns the browser that CHROMIUM names, or else the system's. */
export function findChromium(): string | undefined {
  const folders = (process.env.PATH ?? '').split(path.delimiter)
  const found = NAMES.flatMap((name) => folders.map((folder) => path.join(folder, name))).find(existsSync)
  return process.env.CHROMIUM ?? found
}

/** Starts the browser. Chromium's own sandbox needs rights that root and containers do not give it. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = findChromium()
  if (executablePath === undefined) throw new Error(`${NO_CHROMIUM}: install it, for example with apt-get`)
  return chromium.launch({ executablePath, args: ['--no-sandbox'] })
}
