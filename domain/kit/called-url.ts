import { checkUrl } from '../../lib/outgoing/check-url.ts'
import { OutgoingError } from '../../lib/outgoing/outgoing-error.ts'
import type { Deps } from './deps.ts'
import { afterField, invalid } from './errors.ts'

/**
 * Checks an address and returns it in its stored form. Throws `invalid`, naming `field`, when the service may not call
 * it.
 */
export async function checkCalledUrl(deps: Deps, text: string, field: string): Promise<string> {
  const trimmed = text.trim()
  if (trimmed.includes('#')) throw invalid(`${field}: must have no fragment`)
  await checkUrl(deps.outgoing, trimmed).catch((error: unknown) => {
    throw error instanceof OutgoingError ? invalid(`${field}: ${urlProblem(error)}`) : error
  })
  return new URL(trimmed).href
}

/** Explains, to follow a field's name, why its address cannot be called. */
export const urlProblem = ({ reason, message }: OutgoingError): string =>
  reason === 'invalid_url' ? 'must be an http or https URL without a user name or password' : afterField(message)
