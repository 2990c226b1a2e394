import type { Arbitrary } from 'fast-check'

export type Outcome = 'accepted' | 'refused'

/** Parser of bytes that strangers send, and what holds for any input. */
export type Parser = {
  name: string
  /** Inputs beside those in the parser's folder of the corpus, most of them valid. */
  seeds(): Promise<Buffer[]> | Buffer[]
  /** Words of the format, which mutations insert. */
  words?: readonly string[]
  /** Well-formed inputs of a grammar. */
  drawn?: Arbitrary<string | Uint8Array>
  /** Corrects what depends on the rest of a mutated input, such as checksums. */
  repair?(input: Buffer): Buffer
  /** Parses an input. Throws if anything but a declared error, or a wrong or too large result, comes of it. */
  check(input: Buffer): Promise<Outcome> | Outcome
  /** Number of cheap inputs that cost as much as one of this parser. Default: 1. */
  cost?: number
  close?(): Promise<void>
}

const MAX_SENTENCE = 20_000

/** Returns 'refused' for a declared error with a bounded sentence, and throws any other. */
export function refusal(error: unknown, ...declared: (new (...args: never[]) => Error)[]): 'refused' {
  if (!(error instanceof Error) || !declared.some((type) => error instanceof type)) throw error
  if (error.message.length > MAX_SENTENCE || !error.message.isWellFormed()) {
    throw new Error(`a refusal of ${error.message.length} characters: ${error.message.slice(0, 200)}`, { cause: error })
  }
  return 'refused'
}
