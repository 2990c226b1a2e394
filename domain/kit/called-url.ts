import { checkUrl } from '../../lib/outgoing/check-url.ts'
import { OutgoingError } from '../../lib/outgoing/outgoing-error.ts'
import type { Deps } from './deps.ts'
import { afterField, invalid } from './errors.ts'

/** Checks an address and returns it as it is stored. Throws `invalid`, naming `field`, for one that may not be called. */
export async function checkCalledUrl(deps: Deps, text: string, field: string): Promise<string> {
  const trimmed = text.trim()
  if (trimmed.includes('#')) throw invalid(`${field}: must have no fragment`)
  await checkUrl(deps.outgoing, trimmed).catch((error: unknown) => {
    throw error instanceof OutgoingError ? invalid(`${field}: ${urlProblem(error)}`) : error
  })
  return new URL(trimmed).href
}

/** Says after the name of a field why its address cannot be called. */
export const urlProblem = ({ reason, message }: OutgoingError): string =>
  reason === 'invalid_url' ? 'must be an http or https URL without a user name or password' : afterField(message)
