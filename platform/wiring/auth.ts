import type { Logger } from 'pino'
import { createOauthProvider } from '../../domain/identity/auth/oauth-provider.ts'
import { createOpenIdProvider } from '../../domain/identity/auth/open-id-provider.ts'
import type { AuthSettings } from '../../domain/identity/auth/settings.ts'
import { createTokens, deriveKey } from '../../domain/identity/auth/tokens.ts'
import { isLoopback } from '../../lib/loopback.ts'
import type { Config } from '../config.ts'

/** Builds the settings of authentication. `fallbackSecret` is for mode none, where tokens are of no use. */
export function createAuth(config: Config, fallbackSecret: Uint8Array, log: Logger): AuthSettings {
  warn(config, log)
  const { AUTH_MODE: mode, AUTH_ADMIN_EMAIL: email, AUTH_ADMIN_PASSWORD: password } = config
  const given = config.AUTH_JWT_SECRET
  const secret = given === undefined ? fallbackSecret : new TextEncoder().encode(given)
  return {
    mode,
    hasPasswords: mode === 'admin' || (mode === 'full' && !config.AUTH_DISABLE_PASSWORD),
    hasSignup: mode === 'full' && !config.AUTH_DISABLE_SIGNUP,
    tokens: createTokens({
      secret,
      accessSeconds: config.AUTH_JWT_ACCESS_TOKEN_LIFETIME,
      refreshSeconds: config.AUTH_JWT_REFRESH_TOKEN_LIFETIME,
    }),
    apiKeySecret: deriveKey(secret, 'api-keys'),
    administrator: mode !== 'none' && email ? { email, password } : undefined,
    identityProviders: mode === 'full' ? identityProviders(config, log) : {},
    baseUrl: config.AUTH_BASE_URL,
    pageOrigins: config.CORS_ALLOWED_ORIGINS.filter(isOrigin),
  }
}

/** Reports whether a text is an origin as browsers send it. `*` and `null` name none. */
const isOrigin = (text: string): boolean => URL.parse(text)?.origin === text

const RECOMMENDED_SECRET_CHARACTERS = 32

function warn(config: Config, log: Logger): void {
  if (config.AUTH_MODE === 'none') return
  if ((config.AUTH_JWT_SECRET?.length ?? 0) < RECOMMENDED_SECRET_CHARACTERS) {
    log.warn(`AUTH_JWT_SECRET is short; ${RECOMMENDED_SECRET_CHARACTERS} characters or more are recommended`)
  }
  const { protocol, hostname } = new URL(config.AUTH_BASE_URL)
  if (protocol === 'http:' && !isLoopback(hostname)) {
    log.warn('AUTH_BASE_URL is http, so browsers will drop the Secure cookies')
  }
  const hasProvider = config.AUTH_IDPA_CLIENT_ID || config.AUTH_IDPB_CLIENT_ID
  if (config.AUTH_MODE === 'full' && config.AUTH_DISABLE_PASSWORD && !hasProvider) {
    log.warn('nobody can sign in: AUTH_DISABLE_PASSWORD is true, and there is no identity provider')
  }
}

function identityProviders(config: Config, log: Logger): AuthSettings['identityProviders'] {
  const report = (provider: string) => (failure: object) =>
    log.warn({ provider, ...failure }, 'identity provider failed')
  const redirectUri = (name: string) => `${config.AUTH_BASE_URL}${config.API_PREFIX}/v1/auth/callback/${name}`
  return {
    ...(config.AUTH_IDPA_CLIENT_ID &&
      config.AUTH_IDPA_CLIENT_SECRET && {
        idpa: createOpenIdProvider({
          issuer: config.AUTH_IDPA_ISSUER,
          clientId: config.AUTH_IDPA_CLIENT_ID,
          clientSecret: config.AUTH_IDPA_CLIENT_SECRET,
          redirectUri: config.AUTH_IDPA_REDIRECT_URI ?? redirectUri('idpa'),
          allowedDomains: config.AUTH_IDPA_ALLOWED_DOMAINS ?? [],
          report: report('idpa'),
        }),
      }),
    ...(config.AUTH_IDPB_CLIENT_ID &&
      config.AUTH_IDPB_CLIENT_SECRET && {
        idpb: createOauthProvider({
          authorizeUrl: config.AUTH_IDPB_AUTHORIZE_URL,
          tokenUrl: config.AUTH_IDPB_TOKEN_URL,
          userUrl: config.AUTH_IDPB_USER_URL,
          scope: config.AUTH_IDPB_SCOPE,
          clientId: config.AUTH_IDPB_CLIENT_ID,
          clientSecret: config.AUTH_IDPB_CLIENT_SECRET,
          redirectUri: config.AUTH_IDPB_REDIRECT_URI ?? redirectUri('idpb'),
          report: report('idpb'),
        }),
      }),
  }
}
