import { z } from 'zod'
import { badGateway, DomainError, invalid, unauthenticated } from '../errors.ts'

/** What a sign-in begins with and is checked with; a browser keeps it in between, sealed. */
const Secrets = z.object({ state: z.string(), verifier: z.string(), nonce: z.string().optional() })
export type Secrets = z.infer<typeof Secrets>

/** Is told why something failed, without a secret in it. */
export type Report = (failure: { host?: string; status?: number; reason?: string }) => void

/**
 * Checks that the query is an answer; returns its state. Throws `invalid`, and `unauthenticated` when the provider says
 * that the user was not let in, or did not want to.
 */
export function checkCallback(query: string): string {
  const parameters = new URLSearchParams(query)
  for (const name of new Set(parameters.keys())) {
    if (parameters.getAll(name).length > 1) throw invalid('The query has a parameter more than once')
  }
  const error = parameters.get('error')
  if (error) throw unauthenticated(`The identity provider has not signed you in${describe(error)}`)
  if (!parameters.get('code')) throw invalid('code: is needed')
  const state = parameters.get('state')
  if (!state) throw invalid('state: is needed')
  return state
}

/** What was sealed for the answer with this state. Throws `unauthenticated` for the answer to another sign-in. */
export function readSecrets(sealed: Record<string, unknown>, state: string): Secrets {
  const secrets = Secrets.safeParse(sealed)
  if (!secrets.success || secrets.data.state !== state) {
    throw unauthenticated('This is not the answer to the sign-in that was begun in this browser last; begin again')
  }
  return secrets.data
}

/** The code alone: whoever made the link has chosen the words. */
const describe = (error: string): string => (/^[a-z_]{1,50}$/.test(error) ? ` (${error})` : '')

export const notVerified = () => unauthenticated("The identity provider's answer could not be verified; begin again")

/** These are mistakes of whoever has set up the service, GitHub's words for them included. */
const MISCONFIGURED = ['invalid_client', 'unauthorized_client', 'incorrect_client_credentials', 'redirect_uri_mismatch']

/**
 * For what openid-client throws: `bad_gateway` where there was no answer or the provider does not know the service, else
 * `unauthenticated`. What was wrong is not told; there are tokens in it.
 */
export function explain(error: unknown, report: Report | undefined): DomainError {
  for (let cause = error, depth = 0; typeof cause === 'object' && cause !== null && depth < 5; depth++) {
    if (cause instanceof DomainError) return cause
    if ('error' in cause && MISCONFIGURED.some((code) => code === (cause as { error: unknown }).error)) {
      return badGateway("The identity provider does not accept this service's client id, secret or redirect URI")
    }
    cause = (cause as { cause?: unknown }).cause
  }
  const { name, code } = error as { name?: unknown; code?: unknown }
  report?.({ reason: [name, code].filter((part) => typeof part === 'string').join(' ') })
  return notVerified()
}
