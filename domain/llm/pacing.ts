import { setTimeout as sleep } from 'node:timers/promises'

/** Waits, or throws `signal.reason` as soon as the signal is aborted. */
export async function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (delayMs <= 0) return
  await sleep(delayMs, undefined, { signal }).catch((error: unknown) => {
    // Node rejects with its own AbortError; callers look for the reason they gave.
    signal.throwIfAborted()
    throw error
  })
}

/**
 * Yields the tokens, `intervalMs` before each one. Due times count from the start, not from the token before, so that
 * late timers do not add up and a rate above 1,000 tokens a second needs one timer for many tokens.
 */
export async function* paced(tokens: Iterable<string>, intervalMs: number, signal: AbortSignal): AsyncIterable<string> {
  signal.throwIfAborted()
  let dueMs = performance.now()
  for (const token of tokens) {
    dueMs += intervalMs
    const waitMs = dueMs - performance.now()
    if (intervalMs > 0 && waitMs >= 1) await pause(waitMs, signal)
    else signal.throwIfAborted()
    yield token
  }
}

/** A word with the space before it, at most 16 characters of it; joined, the tokens are the text again. */
const wordToken = /\s*\S{1,16}|\s+$/gu

export function splitIntoTokens(text: string): string[] {
  return text.match(wordToken) ?? []
}
