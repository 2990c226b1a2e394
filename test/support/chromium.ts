import { findChromium, NO_CHROMIUM } from '../../dev/chromium.ts'

const isThere = findChromium() !== undefined
if (!isThere) process.stdout.write(`without CI no page is opened: ${NO_CHROMIUM}\n`)

/** Describes tests of pages. Without a browser they are skipped, but in CI they fail: nobody checks what was skipped there. */
export const describePages = isThere || process.env.CI ? describe : describe.skip
