import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import { type AccessToken, Provider } from 'oidc-provider'
import type { Browser, Page } from './browser.ts'
import { startEverythingServer } from './everything-server.ts'

/** The reference MCP server behind an authorization server: oidc-provider, with dynamic registration. */
export type ProtectedServer = {
  url: string
  /** Scope that calls of tools need. */
  scope: string
  /** Requests to the token endpoint, by their grant type. */
  grants: string[]
  /** Accounts of the tokens with which tools were called and prompts read. */
  callers: (string | undefined)[]
  /** Resource that the server's metadata name; its own address by default. */
  resource: string
  /** Address to which the server redirects all requests. */
  redirectTo: string | undefined
  /** Called for each request with a token that is valid. */
  onCall: (token: AccessToken) => Promise<void>
  /** Whether refresh tokens are refused. */
  isWithdrawn: boolean
  /** Ends all access tokens that were issued so far. */
  endTokens(): void
  stop(): Promise<void>
}

const ACCESS_SECONDS = 3600

export async function startProtectedServer(): Promise<ProtectedServer> {
  const everything = await startEverythingServer()
  const [authorization, front] = [createServer(), createServer()]
  const [issuer, origin] = [await listen(authorization), await listen(front)]
  const provider = await createProvider(issuer, () => server)
  const handle = provider.callback()
  authorization.on('request', async (incoming: IncomingMessage, response: ServerResponse) => {
    if (incoming.url === '/token' && server.isWithdrawn) return answer(response, 400, { error: 'invalid_grant' })
    await handle(incoming, response)
  })
  let validFrom = 0
  const server: ProtectedServer = {
    url: `${origin}/mcp`,
    scope: 'tools',
    grants: [],
    callers: [],
    resource: `${origin}/mcp`,
    redirectTo: undefined,
    onCall: async () => {},
    isWithdrawn: false,
    endTokens: () => {
      validFrom = server.grants.length
    },
    stop: async () => {
      await Promise.all([authorization, front].map(close))
      await everything.stop()
    },
  }
  provider.on('grant.success', (ctx) => {
    server.grants.push(`${ctx.oidc.params?.grant_type}`)
    issued.set(`${(ctx.body as { access_token?: string }).access_token}`, server.grants.length)
  })
  const issued = new Map<string, number>()
  front.on('request', async (incoming: IncomingMessage, response: ServerResponse) => {
    if (server.redirectTo !== undefined) return void response.writeHead(307, { location: server.redirectTo }).end()
    if (incoming.url?.startsWith('/.well-known/oauth-protected-resource')) {
      const metadata = { resource: server.resource, authorization_servers: [issuer], scopes_supported: ['tools'] }
      return answer(response, 200, metadata)
    }
    const text = /^Bearer (.+)$/.exec(incoming.headers.authorization ?? '')?.[1]
    const token = text === undefined ? undefined : await provider.AccessToken.find(text)
    const isValid = token?.isValid && token.aud === server.url && (issued.get(`${text}`) ?? 0) > validFrom
    if (!token || !isValid)
      return refuse(response, 401, `resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`)
    const body = await read(incoming)
    if (/"(tools\/call|prompts\/get)"/.test(`${body}`)) {
      if (!server.scope.split(' ').every((one) => token.scope?.split(' ').includes(one))) {
        return refuse(response, 403, `error="insufficient_scope", scope="${server.scope}"`)
      }
      server.callers.push(token.accountId)
      await server.onCall(token)
    }
    forward(everything.url, incoming, body, response)
  })
  return server
}

async function createProvider(issuer: string, server: () => ProtectedServer): Promise<Provider> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const terminal = console
  const { info, warn } = terminal
  Object.assign(terminal, { info: () => {}, warn: () => {} })
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'a' }] },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    findAccount: async (_ctx, login) => ({ accountId: login, claims: async () => ({ sub: login }) }),
    pkce: { required: () => true },
    scopes: ['openid', 'offline_access', 'tools', 'more'],
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: async (_ctx, resource) => ({
          scope: 'tools more',
          audience: resource === server().resource ? server().resource : 'somebody else',
          accessTokenTTL: ACCESS_SECONDS,
          accessTokenFormat: 'opaque',
        }),
        useGrantedResource: async () => true,
      },
    },
    ttl: {
      Session: 3600,
      Grant: 3600,
      Interaction: 3600,
      AccessToken: ACCESS_SECONDS,
      IdToken: 3600,
      RefreshToken: 3600,
    },
  })
  Object.assign(terminal, { info, warn })
  return provider
}

/** Signs in as a user by submitting the provider's forms. Returns the address of the callback, without opening it. */
export async function signInThere(browser: Browser, begun: Page, login: string, callback: string): Promise<string> {
  let { page, reached } = await browser.followTo(begun, callback)
  for (let forms = 0; reached === undefined && forms < 3; forms++) {
    const prompt = /name="prompt" value="(\w+)"/.exec(page.text)?.[1]
    const action = /action="([^"]+)"/.exec(page.text)?.[1]
    if (prompt === undefined || action === undefined) throw new Error(`no form at ${page.url}: ${page.text}`)
    const form = { prompt, ...(prompt === 'login' && { login, password: 'any' }) }
    const sent = await browser.submit(new URL(action, page.url).href, form)
    ;({ page, reached } = await browser.followTo(sent, callback))
  }
  if (reached === undefined) throw new Error(`the provider asks without end, at last ${page.url}`)
  return reached
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const close = (server: Server) =>
  new Promise<void>((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })

const answer = (response: ServerResponse, status: number, body: object): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

const refuse = (response: ServerResponse, status: number, challenge: string): void =>
  void response.writeHead(status, { 'www-authenticate': `Bearer ${challenge}` }).end()

async function read(incoming: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of incoming) pieces.push(piece)
  return Buffer.concat(pieces)
}

function forward(to: string, { method, headers }: IncomingMessage, body: Buffer, response: ServerResponse): void {
  const { authorization: _, host: __, ...kept } = headers
  const outgoing = request(to, { method, headers: kept }, (answered) => {
    response.writeHead(answered.statusCode ?? 502, answered.headers)
    answered.pipe(response)
  })
  outgoing.on('error', () => response.destroy())
  response.on('close', () => outgoing.destroy())
  outgoing.end(body)
}
