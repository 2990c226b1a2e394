import {
  auth,
  computeScopeUnion,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  OAuthError,
  OAuthErrorCode,
  refreshAuthorization,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { cutAt } from '../../../../lib/truncate.ts'
import { toLine } from '../protocol/text.ts'

/** Server at which to sign in. A client without an id registers itself. */
export type SignInServer = {
  url: string
  redirectUrl: string
  client: { client_id: string; client_secret?: string } | undefined
  scope: string | undefined
}

/** Sign-in that has begun, as JSON that must be kept secret until the callback. */
export type Begun = {
  url: string
  redirectUrl: string
  verifier: string
  client: StoredOAuthClientInformation
  discovery: OAuthDiscoveryState
  resource?: string | undefined
  scope?: string | undefined
}

/** Tokens with what a refresh needs, as JSON. */
export type Granted = Pick<Begun, 'url' | 'client' | 'discovery' | 'resource'> & {
  tokens: StoredOAuthTokens
  expiresAt: Date | undefined
}

/** Error of a sign-in, in a sentence without secrets. */
export class SignInFailure extends Error {
  override name = 'SignInFailure'
}

const MAX_MESSAGE = 300

/** Begins a sign-in by the library's flow. Returns where the browser has to go. Throws `SignInFailure`. */
export async function beginSignIn(
  fetchFn: typeof fetch,
  server: SignInServer,
  state: string,
): Promise<{ location: string; begun: Begun }> {
  const challenge = await challengeOf(fetchFn, server.url)
  const memory: Memory = { client: server.client }
  const scope = computeScopeUnion(challenge.scope, server.scope)
  const options = { serverUrl: server.url, fetchFn, ...(scope !== undefined && { scope }) }
  const { resourceMetadataUrl } = challenge
  await inWords(
    auth(providerOf(memory, server.redirectUrl, state), {
      ...options,
      ...(resourceMetadataUrl !== undefined && { resourceMetadataUrl }),
    }),
  )
  const { client, verifier, discovery, location, resource } = memory
  if (client === undefined || verifier === undefined || discovery === undefined || location === undefined) {
    throw new SignInFailure('The server does not describe how to sign in.')
  }
  if (!/^https?:$/.test(location.protocol)) throw new SignInFailure('The server sends people to an unusual address.')
  const begun = { url: server.url, redirectUrl: server.redirectUrl, verifier, client, discovery, resource, scope }
  return { location: location.href, begun }
}

/** Exchanges the code of a callback for tokens. Checks the issuer that it names. Throws `SignInFailure`. */
export async function finishSignIn(
  fetchFn: typeof fetch,
  begun: Begun,
  { code, iss }: { code: string; iss: string | undefined },
): Promise<Granted> {
  const memory: Memory = { ...begun }
  await inWords(
    auth(providerOf(memory, begun.redirectUrl, ''), {
      serverUrl: begun.url,
      authorizationCode: code,
      fetchFn,
      ...(iss !== undefined && { iss }),
    }),
  )
  if (memory.tokens === undefined) throw new SignInFailure('The server gave no tokens.')
  return grantedOf(begun, { scope: begun.scope, ...memory.tokens })
}

/** Spends the refresh token. Undefined if the grant has ended. Throws `SignInFailure` for what may pass. */
export async function refreshTokens(fetchFn: typeof fetch, granted: Granted): Promise<Granted | undefined> {
  const { client, discovery, resource, tokens } = granted
  if (tokens.refresh_token === undefined) return undefined
  const metadata = discovery.authorizationServerMetadata
  const refreshing = refreshAuthorization(discovery.authorizationServerUrl, {
    clientInformation: client,
    refreshToken: tokens.refresh_token,
    fetchFn,
    ...(metadata !== undefined && { metadata }),
    ...(resource !== undefined && { resource }),
  }).catch((error: unknown) => {
    if (error instanceof OAuthError && ENDED.includes(error.code)) return undefined
    throw error
  })
  const refreshed = await inWords(refreshing)
  return refreshed && grantedOf(granted, { ...tokens, ...refreshed })
}

/** Errors of a refresh after which the same request cannot succeed. */
const ENDED: string[] = [
  OAuthErrorCode.InvalidGrant,
  OAuthErrorCode.InvalidClient,
  OAuthErrorCode.UnauthorizedClient,
  OAuthErrorCode.InvalidScope,
]

const grantedOf = ({ url, client, discovery, resource }: Begun | Granted, tokens: StoredOAuthTokens): Granted => {
  const seconds = tokens.expires_in
  return { url, client, discovery, resource, tokens, expiresAt: seconds === undefined ? undefined : expiryIn(seconds) }
}

const MAX_LIFETIME_SECONDS = 366 * 24 * 60 * 60
const expiryIn = (seconds: number) => new Date(Date.now() + Math.min(Math.max(seconds, 0), MAX_LIFETIME_SECONDS) * 1000)

const PING = '{"jsonrpc":"2.0","id":0,"method":"ping"}'

/** Asks a server without credentials, because some say only in their refusal where their metadata is. */
async function challengeOf(
  fetchFn: typeof fetch,
  url: string,
): Promise<ReturnType<typeof extractWWWAuthenticateParams>> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  try {
    const answer = await fetchFn(url, { method: 'POST', headers, body: PING })
    await answer.body?.cancel()
    return answer.status === 401 ? extractWWWAuthenticateParams(answer) : {}
  } catch {
    return {}
  }
}

/** Values that the library's flow stores. */
type Memory = Partial<Pick<Begun, 'client' | 'verifier' | 'discovery' | 'resource'>> & {
  location?: URL
  tokens?: StoredOAuthTokens
}

const providerOf = (memory: Memory, redirectUrl: string, state: string): OAuthClientProvider => ({
  redirectUrl,
  clientMetadata: {
    client_name: 'Agent Session Service',
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  },
  state: () => state,
  clientInformation: () => memory.client,
  saveClientInformation: (client) => {
    memory.client = client
  },
  tokens: () => undefined,
  saveTokens: (tokens) => {
    memory.tokens = tokens
  },
  redirectToAuthorization: (location) => {
    memory.location = location
  },
  saveCodeVerifier: (verifier) => {
    memory.verifier = verifier
  },
  codeVerifier: () => memory.verifier ?? '',
  discoveryState: () => memory.discovery,
  saveDiscoveryState: (discovery) => {
    memory.discovery = discovery
  },
  saveResourceUrl: (resource) => {
    memory.resource = resource
  },
})

/** Turns errors of the library and of requests into sentences. */
async function inWords<T>(running: Promise<T>): Promise<T> {
  try {
    return await running
  } catch (error) {
    const said = error instanceof Error ? error.message : ''
    throw new SignInFailure(`The sign-in failed: ${cutAt(toLine(said), MAX_MESSAGE)}`, { cause: error })
  }
}
