import * as openid from 'openid-client'
import { z } from 'zod'
import { requestAuthorization } from './authorization-request.ts'
import { explain, notVerified, type Secrets } from './callback.ts'
import { toIdentity } from './identity.ts'
import type { ClientOptions, Identity, IdentityProvider } from './identity-provider.ts'
import { createProviderFetch, noAnswer, type ProviderFetch } from './provider-fetch.ts'

/**
 * Options of an OAuth 2 provider. `userUrl` returns the user of a token; as on GitHub, the user's e-mail addresses may
 * be at `/emails` below it.
 */
export type OauthOptions = ClientOptions & { authorizeUrl: string; tokenUrl: string; userUrl: string; scope: string }

const User = z.record(z.string(), z.unknown())
const Emails = z.array(z.looseObject({ email: z.unknown(), primary: z.unknown(), verified: z.unknown() }))

/** Creates a provider that speaks OAuth 2 and has an API for the user's identity. */
export function createOauthProvider(options: OauthOptions): IdentityProvider {
  const ask = createProviderFetch(options)
  const config = configure(options, ask)
  return {
    start: () => requestAuthorization(config, options),
    finish: async (query, secrets) => {
      const token = await exchangeCode(config, options, query, secrets)
      return readUser(ask, options.userUrl, token)
    },
  }
}

function configure(options: OauthOptions, ask: ProviderFetch): openid.Configuration {
  const { authorizeUrl, tokenUrl, clientId, clientSecret, redirectUri } = options
  // OAuth 2 without discovery has no issuer, but openid-client requires one.
  const server = { issuer: tokenUrl, authorization_endpoint: authorizeUrl, token_endpoint: tokenUrl }
  const post = openid.ClientSecretPost(clientSecret)
  const authenticate: openid.ClientAuth = (as, client, body, headers) => {
    // Exactly as configured; openid-client may change its spelling.
    body.set('redirect_uri', redirectUri)
    post(as, client, body, headers)
  }
  const config = new openid.Configuration(server, clientId, clientSecret, authenticate)
  config[openid.customFetch] = async (url, request) => toStandard(await ask(url, request))
  if ([authorizeUrl, tokenUrl].some((url) => new URL(url).protocol === 'http:')) openid.allowInsecureRequests(config)
  return config
}

/**
 * Converts a token response to the standard form: GitHub returns errors with status 200. Removes an ID token, which
 * some providers add, because it is unknown who may sign it. Throws `bad_gateway` for an answer that is not a JSON
 * object.
 */
async function toStandard(answer: Response): Promise<Response> {
  const body = User.safeParse(await answer.json().catch(() => undefined))
  if (!body.success) throw noAnswer()
  const { id_token: _, ...rest } = body.data
  const isError = 'error' in rest && !('access_token' in rest)
  return Response.json(rest, { status: isError ? 400 : answer.status })
}

async function exchangeCode(
  config: openid.Configuration,
  { redirectUri, report }: OauthOptions,
  query: string,
  { state, verifier }: Secrets,
): Promise<string> {
  const url = new URL(redirectUri)
  // Other parameters are ignored: an `iss`, for example, could not be compared with anything.
  url.search = new URLSearchParams({ code: new URLSearchParams(query).get('code') ?? '', state }).toString()
  try {
    const checks = { expectedState: state, pkceCodeVerifier: verifier }
    const { access_token, token_type } = await openid.authorizationCodeGrant(config, url, checks)
    if (token_type !== 'bearer') throw notVerified()
    return access_token
  } catch (error) {
    throw explain(error, report)
  }
}

async function readUser(ask: ProviderFetch, userUrl: string, token: string): Promise<Identity> {
  const user = User.safeParse(await readJson(ask, userUrl, token))
  if (!user.success) throw notVerified()
  const { id, sub, name, login, email, email_verified, avatar_url, picture } = user.data
  return toIdentity({
    issuer: new URL(userUrl).origin,
    subject: id ?? sub,
    verifiedEmail: email_verified === true && email ? email : await readPrimaryEmail(ask, userUrl, token),
    names: [name, login],
    avatarUrl: avatar_url ?? picture,
  })
}

/** Returns the user's primary verified e-mail address, or undefined when the API does not have one. */
async function readPrimaryEmail(ask: ProviderFetch, userUrl: string, token: string): Promise<unknown> {
  const url = new URL(userUrl)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/emails`
  const emails = Emails.safeParse(await readJson(ask, url.href, token))
  if (!emails.success) return undefined
  return emails.data.find(({ primary, verified }) => primary === true && verified === true)?.email
}

/** Returns an answer's JSON, or undefined for an error status or invalid JSON. Throws `bad_gateway`. */
async function readJson(ask: ProviderFetch, url: string, token: string): Promise<unknown> {
  const headers = {
    accept: 'application/json',
    authorization: `Bearer ${token}`,
    // GitHub's API rejects requests without this header.
    'user-agent': 'agent-session-service',
  }
  const answer = await ask(url, { method: 'GET', headers, body: undefined, redirect: 'manual' })
  return answer.ok ? answer.json().catch(() => undefined) : undefined
}
