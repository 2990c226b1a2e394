import type { AuthConfig, AuthMode, IdentityProviderName } from '../../contract/auth.ts'
import type { IdentityProvider } from './identity-provider.ts'
import type { Tokens } from './tokens.ts'

/** How callers prove who they are; made of the environment, in platform/wiring/auth.ts. */
export type AuthSettings = {
  mode: AuthMode
  /** Whether one can log in with e-mail and password. */
  hasPasswords: boolean
  hasSignup: boolean
  tokens: Tokens
  /** API keys are made with it; outside mode none, where nobody needs one, nothing that is stored leads to it. */
  apiKeySecret: Uint8Array
  /** Who owns the default organization; in mode admin nobody else gets in. Without passwords it is an e-mail alone. */
  administrator: { email: string; password: string | undefined } | undefined
  identityProviders: Partial<Record<IdentityProviderName, IdentityProvider>>
  /** The address at which browsers find the service, without a slash at its end. */
  baseUrl: string
}

/** In mode admin the only e-mail that counts. */
export const onlyEmail = ({ mode, administrator }: AuthSettings): string | null =>
  mode === 'admin' ? (administrator?.email ?? '') : null

/** Presents the ways to sign in. */
export const presentAuthConfig = (auth: AuthSettings): AuthConfig => ({
  mode: auth.mode,
  password_auth_enabled: auth.hasPasswords,
  oauth_providers: Object.keys(auth.identityProviders),
  signup_enabled: auth.hasSignup,
})
