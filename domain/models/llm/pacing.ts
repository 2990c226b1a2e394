import { sleep } from '../../../lib/sleep.ts'

/** Waits `delayMs`. Throws the signal's reason as soon as it aborts. */
export async function delay(delayMs: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (delayMs > 0) await sleep(delayMs, signal)
  signal.throwIfAborted()
}

/**
 * Yields the tokens, waiting `intervalMs` before each. Due times count from the start, not from the previous token, so
 * that timer delays do not add up and a rate above 1,000 tokens a second needs one timer for many tokens.
 */
export async function* paced(tokens: Iterable<string>, intervalMs: number, signal: AbortSignal): AsyncIterable<string> {
  signal.throwIfAborted()
  let dueMs = performance.now()
  for (const token of tokens) {
    dueMs += intervalMs
    const waitMs = dueMs - performance.now()
    if (intervalMs > 0 && waitMs >= 1) await delay(waitMs, signal)
    else signal.throwIfAborted()
    yield token
  }
}

/** Matches up to 16 characters of a word, with the space before it. The joined tokens are the original text. */
const wordToken = /\s*\S{1,16}|\s+$/gu

export function splitIntoTokens(text: string): string[] {
  return text.match(wordToken) ?? []
}
