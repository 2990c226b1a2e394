import type { Report, Secrets } from './callback.ts'

/** An identity provider. The browser keeps `secrets`, sealed, between the start and the end of a sign-in. */
export type IdentityProvider = {
  /** Returns the address to redirect the browser to. Throws `bad_gateway` when the provider does not answer. */
  start(): Promise<{ location: string; secrets: Secrets }>
  /**
   * Returns the identity of the user, from the query of the browser's return. Throws `invalid` for a malformed query,
   * `unauthenticated` for a query that does not match `secrets` or that the provider does not confirm, `forbidden` for
   * a user who may not sign in, and `bad_gateway` if the provider does not answer or rejects the service.
   */
  finish(query: string, secrets: Secrets): Promise<Identity>
}

/**
 * A user as the provider knows them. `email` is verified. `subject` is the provider's address and its permanent id of
 * the user: another provider may give the same id to another user.
 */
export type Identity = { subject: string; email: string; name: string; avatarUrl: string | null }

export type ClientOptions = {
  clientId: string
  clientSecret: string
  redirectUri: string
  /** Time limit for each call to the provider, including its whole answer. Default 10 s. */
  timeoutMs?: number
  /** Receives the reason for a failure, without any secret in it. */
  report?: Report
}
