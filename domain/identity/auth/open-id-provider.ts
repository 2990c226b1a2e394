import * as openid from 'openid-client'
import { badGateway, forbidden } from '../../kit/errors.ts'
import { requestAuthorization } from './authorization-request.ts'
import { explain, notVerified, type Report, type Secrets } from './callback.ts'
import { domainOf, toIdentity } from './identity.ts'
import type { ClientOptions, Identity, IdentityProvider } from './identity-provider.ts'
import { createProviderFetch } from './provider-fetch.ts'

export type OpenIdOptions = ClientOptions & {
  issuer: string
  /** Domains of the e-mail addresses that may sign in; an empty list allows all. */
  allowedDomains: string[]
}

const SCOPE = 'openid email profile'

/**
 * Creates a provider that speaks OpenID Connect. Its endpoints and keys come from discovery, and its ID tokens must be
 * signed.
 */
export function createOpenIdProvider(options: OpenIdOptions): IdentityProvider {
  const configure = rememberSuccess(() => discover(options))
  const allowedDomains = new Set(options.allowedDomains.map((domain) => domain.toLowerCase()))
  return {
    start: async () => {
      const { redirectUri } = options
      return requestAuthorization(await configure(), { redirectUri, scope: SCOPE, nonce: openid.randomNonce() })
    },
    finish: async (query, secrets) => {
      const config = await configure()
      const identity = await readIdentity(config, currentUrl(options, query), secrets, options.report)
      if (allowedDomains.size > 0 && !allowedDomains.has(domainOf(identity.email))) {
        throw forbidden('Nobody may sign in here with an e-mail address of this domain')
      }
      return identity
    },
  }
}

/** Discovers the provider's endpoints and keys. Throws `bad_gateway`, also for an unusable answer. */
async function discover(options: OpenIdOptions): Promise<openid.Configuration> {
  const { issuer, clientId, clientSecret, report } = options
  const isPlain = new URL(issuer).protocol === 'http:'
  try {
    const config = await openid.discovery(new URL(issuer), clientId, clientSecret, authenticate(options), {
      [openid.customFetch]: createProviderFetch(options),
      execute: [openid.enableNonRepudiationChecks, ...(isPlain ? [openid.allowInsecureRequests] : [])],
    })
    const { authorization_endpoint, token_endpoint, jwks_uri } = config.serverMetadata()
    if (!authorization_endpoint || !token_endpoint || !jwks_uri) throw notDescribed()
    return config
  } catch (error) {
    const known = explain(error, report)
    throw known.kind === 'bad_gateway' ? known : notDescribed()
  }
}

const notDescribed = () => badGateway('The identity provider has no valid discovery document')

/**
 * Returns a client authentication that sends the redirect URI as configured. openid-client derives it from the current
 * URL, without the query and possibly spelled differently, but providers compare it character by character.
 */
function authenticate({ redirectUri, clientSecret }: ClientOptions): openid.ClientAuth {
  const post = openid.ClientSecretPost(clientSecret)
  const basic = openid.ClientSecretBasic(clientSecret)
  return (server, client, body, headers) => {
    body.set('redirect_uri', redirectUri)
    // Default according to OpenID Connect Discovery 1.0, section 3.
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const use = methods.includes('client_secret_post') ? post : basic
    use(server, client, body, headers)
  }
}

function currentUrl({ redirectUri }: ClientOptions, query: string): URL {
  const url = new URL(redirectUri)
  url.search = query
  return url
}

async function readIdentity(
  config: openid.Configuration,
  url: URL,
  secrets: Secrets,
  report: Report | undefined,
): Promise<Identity> {
  const claims = await readClaims(config, url, secrets, report)
  return toIdentity({
    issuer: config.serverMetadata().issuer,
    subject: claims.sub,
    verifiedEmail: claims.email_verified === true ? claims.email : undefined,
    names: [claims.name, claims.preferred_username],
    avatarUrl: claims.picture,
  })
}

async function readClaims(
  config: openid.Configuration,
  url: URL,
  { state, nonce, verifier }: Secrets,
  report: Report | undefined,
) {
  if (nonce === undefined) throw notVerified()
  try {
    const tokens = await openid.authorizationCodeGrant(config, url, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    })
    const claims = tokens.claims()
    if (claims === undefined) throw notVerified()
    const isComplete = claims.email !== undefined && claims.email_verified !== undefined
    if (isComplete || config.serverMetadata().userinfo_endpoint === undefined) return claims
    return await openid.fetchUserInfo(config, tokens.access_token, claims.sub)
  } catch (error) {
    throw explain(error, report)
  }
}

/** Time for which a discovered configuration is kept; it seldom changes. */
const REMEMBERED_MS = 60 * 60 * 1000

/**
 * Caches the result of `run`. Concurrent callers share one run. A failure is not cached and does not replace an earlier
 * result.
 */
function rememberSuccess<T>(run: () => Promise<T>): () => Promise<T> {
  let known: { result: T; until: number } | undefined
  let running: Promise<T> | undefined
  const ask = async () => {
    try {
      const result = await run()
      known = { result, until: Date.now() + REMEMBERED_MS }
      return result
    } catch (error) {
      if (known === undefined) throw error
      return known.result
    } finally {
      running = undefined
    }
  }
  return async () => {
    if (known !== undefined && Date.now() < known.until) return known.result
    running ??= ask()
    return running
  }
}
