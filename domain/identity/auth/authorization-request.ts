import * as openid from 'openid-client'
import type { Secrets } from './callback.ts'
import type { ClientOptions } from './identity-provider.ts'

/**
 * Builds the authorization URL and the secrets that verify its answer: state, PKCE verifier, and the nonce if there is
 * one.
 */
export async function requestAuthorization(
  config: openid.Configuration,
  { redirectUri, scope, nonce }: Pick<ClientOptions, 'redirectUri'> & { scope: string; nonce?: string },
): Promise<{ location: string; secrets: Secrets }> {
  const ofNonce: { nonce: string } | Record<string, never> = nonce === undefined ? {} : { nonce }
  const secrets = { state: openid.randomState(), verifier: openid.randomPKCECodeVerifier(), ...ofNonce }
  const location = openid.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope,
    state: secrets.state,
    ...ofNonce,
    code_challenge: await openid.calculatePKCECodeChallenge(secrets.verifier),
    code_challenge_method: 'S256',
  })
  return { location: location.href, secrets }
}
