/**
 * Text of a step as its client has it, where a protocol cannot take text back. An attempt that begins anew adds to it
 * what goes beyond it.
 */
export type SentText = {
  readonly text: string
  /** Returns what the attempt's text so far adds; undefined if the client has other text. */
  grow(textSoFar: string): string | undefined
  /** Returns what the whole text adds; undefined if the client has other or more text. */
  complete(whole: string): string | undefined
  /** Begins the text of another step, or begins anew at a client that has dropped its text. */
  reset(): void
}

export function createSentText(): SentText {
  let sent = ''
  const complete = (whole: string): string | undefined => {
    if (!whole.startsWith(sent)) return undefined
    const rest = whole.slice(sent.length)
    sent = whole
    return rest
  }
  return {
    get text() {
      return sent
    },
    grow: (textSoFar) => (sent.startsWith(textSoFar) ? '' : complete(textSoFar)),
    complete,
    reset: () => {
      sent = ''
    },
  }
}
