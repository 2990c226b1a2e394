import { checkUrl } from '../lib/outgoing/check-url.ts'
import { OutgoingError } from '../lib/outgoing/outgoing-error.ts'
import type { Deps } from './deps.ts'
import { invalid } from './errors.ts'

/** Checks an address and returns it as it is stored. Throws `invalid`, naming `field`, for one that may not be called. */
export async function checkCalledUrl(deps: Deps, text: string, field: string): Promise<string> {
  const trimmed = text.trim()
  if (trimmed.includes('#')) throw invalid(`${field}: must have no fragment`)
  await checkUrl(deps.outgoing, trimmed).catch((error: unknown) => {
    throw error instanceof OutgoingError ? invalid(`${field}: ${error.message}`) : error
  })
  return new URL(trimmed).href
}
