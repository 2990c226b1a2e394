import type { WebPageThreads } from './threads.ts'
import type { ConvertedPage, Page } from './worker.ts'

/** Error for a page that cannot be converted; the message says why. */
export class WebPageError extends Error {
  override name = 'WebPageError'
}

const TIME_LIMIT_MS = 10_000

const UNCONVERTED = {
  done: 'the page cannot be converted',
  late: 'the page takes too long to convert',
  broken: 'the page is too large or too deeply nested to convert',
  busy: 'too many pages are being converted; try again later',
}

/**
 * Converts HTML to Markdown. A page may be crafted to take much time and memory, so conversions run in a limited number
 * of threads. Throws WebPageError, or the signal's reason when it aborts.
 */
export async function convertWebPage(
  threads: WebPageThreads,
  page: Page,
  signal: AbortSignal,
  timeLimitMs = TIME_LIMIT_MS,
): Promise<ConvertedPage> {
  const { answers, end } = await threads.run(page, timeLimitMs, signal)
  if (answers[0] === undefined) throw new WebPageError(UNCONVERTED[end])
  return answers[0]
}
