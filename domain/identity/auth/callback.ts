import { z } from 'zod'
import { badGateway, DomainError, invalid, unauthenticated } from '../../kit/errors.ts'

/** Values of a started sign-in that verify its answer. The browser keeps them, sealed. */
const Secrets = z.object({ state: z.string(), verifier: z.string(), nonce: z.string().optional() })
export type Secrets = z.infer<typeof Secrets>

/** Receives the reason for a failure, without any secret in it. */
export type Report = (failure: { host?: string; status?: number; reason?: string }) => void

/**
 * Validates the query of an authorization response and returns its state. Throws `invalid` for a malformed query, and
 * `unauthenticated` when the provider reports an error, for example because the user declined.
 */
export function checkCallback(query: string): string {
  const parameters = new URLSearchParams(query)
  for (const name of new Set(parameters.keys())) {
    if (parameters.getAll(name).length > 1) throw invalid('The query has a parameter more than once')
  }
  const error = parameters.get('error')
  if (error) throw unauthenticated(`The identity provider has not signed you in${describe(error)}`)
  if (!parameters.get('code')) throw invalid('code: is required')
  const state = parameters.get('state')
  if (!state) throw invalid('state: is required')
  return state
}

/**
 * Returns the sealed secrets of the sign-in with this state. Throws `unauthenticated` when they belong to another
 * sign-in.
 */
export function readSecrets(sealed: Record<string, unknown>, state: string): Secrets {
  const secrets = Secrets.safeParse(sealed)
  if (!secrets.success || secrets.data.state !== state) {
    throw unauthenticated('This is not the answer to the sign-in that was begun in this browser last; begin again')
  }
  return secrets.data
}

/** Formats a well-formed error code. Omits all other text, which anybody could have put into the link. */
const describe = (error: string): string => (/^[a-z_]{1,50}$/.test(error) ? ` (${error})` : '')

export const notVerified = () => unauthenticated("The identity provider's answer could not be verified; begin again")

/** Error codes for a misconfigured service, GitHub's own included. */
const MISCONFIGURED = ['invalid_client', 'unauthorized_client', 'incorrect_client_credentials', 'redirect_uri_mismatch']

/**
 * Converts an error of openid-client: to `bad_gateway` when the provider did not answer or rejects the service itself,
 * else to `unauthenticated`. Drops the error's message, which may contain tokens; `report` gets only its name and code.
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
