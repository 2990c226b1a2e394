import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { callbackOf } from './browser.ts'
import { CLIENT } from './identity-provider.ts'

const REDIRECT_URI = callbackOf('idpb')

/** Answers to GET /user and GET /user/emails. Undefined is answered with 404. */
export type Account = { user: unknown; emails?: unknown; token?: Record<string, unknown> }

export type OauthServer = {
  url: string
  /** Environment variables that configure the service to use this server. */
  environment: Record<string, string>
  /** Returns the callback URL for a user who has signed in as this account. `location` is the service's redirect. */
  grant(location: string, account: Account): string
  /** Headers of the requests to the API. */
  apiHeaders: IncomingMessage['headers'][]
  /** Status that answers every request if set. */
  failWith: number | undefined
  close(): Promise<void>
}

type Grant = Account & { challenge: string; redirectUri: string }
type State = { codes: Map<string, Grant>; tokens: Map<string, Account>; server: OauthServer }
type Answer = [status: number, body: unknown]

/** Starts an OAuth 2 server with an API that returns the user, behaving as GitHub does. */
export async function startOauthServer(): Promise<OauthServer> {
  const http = createServer((request, response) => {
    respond(state, request, response).catch((error: unknown) => response.writeHead(599).end(String(error)))
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  // The address of a TCP server is never a pipe name.
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const codes: State['codes'] = new Map()
  const server: OauthServer = {
    url,
    environment: environmentOf(url),
    grant: (location, account) => grant(codes, location, account),
    apiHeaders: [],
    failWith: undefined,
    close: () =>
      new Promise<void>((resolve) => {
        http.close(() => resolve())
        http.closeAllConnections()
      }),
  }
  const state: State = { codes, tokens: new Map(), server }
  return server
}

const environmentOf = (url: string): Record<string, string> => ({
  AUTH_IDPB_CLIENT_ID: CLIENT.clientId,
  AUTH_IDPB_CLIENT_SECRET: CLIENT.clientSecret,
  AUTH_IDPB_AUTHORIZE_URL: `${url}/login/oauth/authorize?allow_signup=false`,
  AUTH_IDPB_TOKEN_URL: `${url}/login/oauth/access_token`,
  AUTH_IDPB_USER_URL: `${url}/user`,
})

/** Issues a code and returns the callback URL. Throws for a request to which GitHub would answer with an error page. */
function grant(codes: State['codes'], location: string, account: Account): string {
  const asked = new URL(location).searchParams
  const get = (name: string) => asked.get(name) ?? ''
  const redirectUri = new URL(get('redirect_uri'))
  const isOurs = redirectUri.href.startsWith(REDIRECT_URI) && get('client_id') === CLIENT.clientId
  if (!isOurs || get('response_type') !== 'code') {
    throw new Error(`the service asks for something else: ${location}`)
  }
  if (get('code_challenge_method') !== 'S256') throw new Error(`the service sends no challenge: ${location}`)
  const code = randomBytes(16).toString('hex')
  codes.set(code, { ...account, challenge: get('code_challenge'), redirectUri: get('redirect_uri') })
  // Some servers add `iss`. The service was not configured with this issuer.
  const answer = { code, state: get('state'), iss: 'https://oauth.example.com' }
  for (const [name, value] of Object.entries(answer)) redirectUri.searchParams.append(name, value)
  return redirectUri.href
}

async function respond(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = new URLSearchParams(await text(request))
  const [status, answer] = answerTo(state, request, body)
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8' }).end(JSON.stringify(answer))
}

function answerTo(state: State, { method, url = '', headers }: IncomingMessage, body: URLSearchParams): Answer {
  if (state.server.failWith !== undefined) return [state.server.failWith, { message: 'failed' }]
  if (method === 'POST' && url === '/login/oauth/access_token') return exchange(state, headers.accept, body)
  state.server.apiHeaders.push(headers)
  const account = state.tokens.get(headers.authorization?.replace('Bearer ', '') ?? '')
  if (!headers['user-agent']) return [403, { message: 'Request forbidden by administrative rules' }]
  if (account === undefined) return [401, { message: 'Bad credentials' }]
  const answers: Record<string, unknown> = { '/user': account.user, '/user/emails': account.emails }
  return answers[url] === undefined ? [404, { message: 'Not Found' }] : [200, answers[url]]
}

/** Exchanges a code for a token. Like GitHub, it refuses with status 200. */
function exchange({ codes, tokens }: State, accept: string | undefined, body: URLSearchParams): Answer {
  if (accept !== 'application/json') return [200, 'access_token=and&so=on']
  if (body.get('client_id') !== CLIENT.clientId || body.get('client_secret') !== CLIENT.clientSecret) {
    return [200, { error: 'incorrect_client_credentials' }]
  }
  const code = body.get('code') ?? ''
  const granted = codes.get(code)
  codes.delete(code)
  const verifier = body.get('code_verifier') ?? ''
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  if (granted === undefined || granted.challenge !== challenge) return [200, { error: 'bad_verification_code' }]
  if (body.get('redirect_uri') !== granted.redirectUri) return [200, { error: 'redirect_uri_mismatch' }]
  const access_token = `gho_${randomBytes(16).toString('hex')}`
  tokens.set(access_token, granted)
  return [200, { access_token, token_type: 'bearer', scope: 'read:user,user:email', ...granted.token }]
}
