import type { AuthConfig, AuthMode, IdentityProviderName } from '../../../contract/auth.ts'
import type { IdentityProvider } from './identity-provider.ts'
import type { Tokens } from './tokens.ts'

/** Settings of authentication, built from the environment in platform/wiring/auth.ts. */
export type AuthSettings = {
  mode: AuthMode
  /** True when users can log in with e-mail and password. */
  hasPasswords: boolean
  hasSignup: boolean
  tokens: Tokens
  /**
   * Secret from which API keys are derived. It cannot be derived from stored data, except in mode none, where keys are
   * not needed.
   */
  apiKeySecret: Uint8Array
  /**
   * Owner of the default organization, and in mode admin the only user who may log in. Without passwords, the e-mail
   * alone identifies the administrator.
   */
  administrator: { email: string; password: string | undefined } | undefined
  identityProviders: Partial<Record<IdentityProviderName, IdentityProvider>>
  /** Address of the service for browsers, without a trailing slash. */
  baseUrl: string
  /** Further origins whose pages may make changes with cookies, as browsers send them. */
  pageOrigins: string[]
}

/** Returns the only e-mail that may log in in mode admin; null in other modes. */
export const onlyEmail = ({ mode, administrator }: AuthSettings): string | null =>
  mode === 'admin' ? (administrator?.email ?? '') : null

/** Presents the ways to sign in. */
export const presentAuthConfig = (auth: AuthSettings): AuthConfig => ({
  mode: auth.mode,
  password_auth_enabled: auth.hasPasswords,
  oauth_providers: Object.keys(auth.identityProviders),
  signup_enabled: auth.hasSignup,
})
