import type { Report, Secrets } from './callback.ts'

/** What a sign-in begins and ends with; `secrets` is kept by the browser, sealed, in between. */
export type IdentityProvider = {
  /** Where the browser goes. Throws `bad_gateway` when the provider does not answer. */
  start(): Promise<{ location: string; secrets: Secrets }>
  /**
   * Who has signed in, by the query that the browser came back with. Throws `invalid` for one that is none, `unauthenticated`
   * for one that does not belong to `secrets` or that the provider does not stand by, `forbidden` for somebody who may not
   * come in, and `bad_gateway`.
   */
  finish(query: string, secrets: Secrets): Promise<Identity>
}

/**
 * `email` has been verified by the provider. `subject` is what the provider knows the user by, for good, and which provider
 * that is: another one in its place has other users under the same names.
 */
export type Identity = { subject: string; email: string; name: string; avatarUrl: string | null }

export type ClientOptions = {
  clientId: string
  clientSecret: string
  redirectUri: string
  /** For each call to the provider, its whole answer included. Default 10 s. */
  timeoutMs?: number
  /** Is told why something failed, without a secret in it. */
  report?: Report
}
