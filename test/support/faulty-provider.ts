import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { CLIENT } from './identity-provider.ts'

const PATHS = ['/.well-known/openid-configuration', '/jwks', '/token', '/userinfo'] as const
export type Path = (typeof PATHS)[number]

/** Deviations from a correct provider. */
export type Faults = {
  claims?: JWTPayload
  /** Claims left out of the ID token. */
  without?: string[]
  sign?: 'none' | 'another key' | 'the client secret' | 'nothing'
  /** Changes to the discovery document. */
  metadata?: Record<string, unknown>
  userinfo?: Record<string, unknown>
  answer?: Partial<Record<Path, (response: ServerResponse) => void>>
}

export type FaultyProvider = {
  issuer: string
  faults: Faults
  /** Path of each request, in order. */
  requests: string[]
  /** Nonce of the next ID token. */
  nonce: string
  close(): Promise<void>
}

const KEY_ID = 'key'
const keys = generateKeyPair('RS256', { extractable: true })
const otherKeys = generateKeyPair('RS256')

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')

/**
 * Starts an OpenID provider that accepts any code for the same signed-in user. Its faults can be changed while it runs.
 */
export async function startFaultyProvider(faults: Faults = {}): Promise<FaultyProvider> {
  const server = createServer((request, response) => {
    answer(provider, request, response).catch((error: unknown) => response.writeHead(599).end(String(error)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // The address of a TCP server is never a pipe name.
  const { port } = server.address() as AddressInfo
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  const provider: FaultyProvider = { issuer: `http://127.0.0.1:${port}`, faults, requests: [], nonce: '', close }
  return provider
}

async function answer(provider: FaultyProvider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  request.resume()
  const path = PATHS.find((candidate) => candidate === request.url)
  provider.requests.push(request.url ?? '')
  const fault = path && provider.faults.answer?.[path]
  if (fault !== undefined) return fault(response)
  if (path === undefined) return void response.writeHead(404).end()
  response.setHeader('Content-Type', 'application/json')
  response.end(JSON.stringify(await bodies[path](provider)))
}

const bodies: Record<Path, (provider: FaultyProvider) => Promise<unknown>> = {
  '/.well-known/openid-configuration': async ({ issuer, faults }) => ({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    userinfo_endpoint: `${issuer}/userinfo`,
    token_endpoint_auth_methods_supported: ['client_secret_post'],
    // The provider claims to support HS256 and `none`. Clients must not rely on it.
    id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
    ...faults.metadata,
  }),
  '/jwks': async () => {
    const jwk = await exportJWK((await keys).publicKey)
    return { keys: [{ ...jwk, kid: KEY_ID, alg: 'RS256', use: 'sig' }] }
  },
  '/token': async (provider) => ({
    access_token: 'access-token-of-the-provider',
    token_type: 'Bearer',
    expires_in: 60,
    ...(provider.faults.sign !== 'nothing' && { id_token: await sign(provider) }),
  }),
  '/userinfo': async ({ faults }) => ({ sub: SUBJECT, ...faults.userinfo }),
}

const SUBJECT = 'somebody'

function sign({ issuer, nonce, faults }: FaultyProvider): Promise<string> {
  const now = Math.floor(Date.now() / 1000)
  const claims: JWTPayload = {
    iss: issuer,
    aud: CLIENT.clientId,
    sub: SUBJECT,
    iat: now,
    exp: now + 600,
    nonce,
    email: 'somebody@example.com',
    email_verified: true,
    name: 'Some Body',
    ...faults.claims,
  }
  for (const name of faults.without ?? []) delete claims[name]
  return signAs(claims, faults.sign)
}

async function signAs(claims: JWTPayload, how: Faults['sign']): Promise<string> {
  if (how === 'none') return `${encode({ alg: 'none' })}.${encode(claims)}.`
  if (how === 'the client secret') {
    const secret = new TextEncoder().encode(CLIENT.clientSecret)
    return new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(secret)
  }
  const { privateKey } = await (how === 'another key' ? otherKeys : keys)
  return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: KEY_ID }).sign(privateKey)
}
