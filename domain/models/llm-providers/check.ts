import { checkUrl } from '../../../lib/outgoing/check-url.ts'
import { OutgoingError } from '../../../lib/outgoing/outgoing-error.ts'
import { urlProblem } from '../../kit/called-url.ts'
import { invalid } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'

/**
 * Checks an address and returns it as it is stored: normalized, without slashes at its end, null when it is empty. Throws
 * `invalid` for an address that may not be called.
 */
export async function checkBaseUrl(deps: Deps, text: string): Promise<string | null> {
  const trimmed = text.trim()
  if (trimmed === '') return null
  if (/[?#]/.test(trimmed)) throw invalid('base_url: must have no query or fragment')
  await checkUrl(deps.outgoing, trimmed).catch((error: unknown) => {
    throw error instanceof OutgoingError ? invalid(`base_url: ${urlProblem(error)}`) : error
  })
  return new URL(trimmed).href.replace(/\/+$/, '')
}
