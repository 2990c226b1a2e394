/**
 * OpenID provider on this machine, for trying sign-in and for its tests. Accepts any name and any password. The name is
 * the e-mail address, or its part before @example.com. The address of a name that begins with "unverified" is not
 * verified.
 */
import { randomBytes } from 'node:crypto'
import { exportJWK, generateKeyPair } from 'jose'
import { type Configuration, Provider } from 'oidc-provider'
import { print, printError } from './terminal.ts'

const HOST = '127.0.0.1'

/** Silences the provider, which warns at every start about settings unfit for production; they do not matter here. */
console.info = () => {}
console.warn = () => {}

function readVariable(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is needed.`)
  return value
}

function claimsOf(login: string) {
  const name = login.trim() || 'nobody'
  const address = name.toLowerCase().replace(/[^a-z0-9.@+_-]+/g, '.')
  const email = address.includes('@') ? address : `${address}@example.com`
  return { sub: login, name, email, email_verified: !address.startsWith('unverified') }
}

async function configure(): Promise<Configuration> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return {
    clients: [
      {
        client_id: readVariable('IDENTITY_PROVIDER_CLIENT_ID'),
        client_secret: readVariable('IDENTITY_PROVIDER_CLIENT_SECRET'),
        redirect_uris: readVariable('IDENTITY_PROVIDER_REDIRECT_URIS').split(','),
        token_endpoint_auth_method: 'client_secret_post',
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    pkce: { required: () => true },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    // Most providers put the claims into the ID token; with "userinfo" only that endpoint has them.
    conformIdTokenClaims: process.env.IDENTITY_PROVIDER_CLAIMS === 'userinfo',
    findAccount: async (_ctx, login) => ({ accountId: login, claims: async () => claimsOf(login) }),
    jwks: {
      keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: randomBytes(8).toString('hex') }],
    },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    features: { devInteractions: { enabled: true } },
    ttl: { Session: 24 * 60 * 60, Grant: 24 * 60 * 60, Interaction: 60 * 60, AccessToken: 60 * 60, IdToken: 60 * 60 },
  }
}

async function main(): Promise<void> {
  const port = Number(readVariable('IDENTITY_PROVIDER_PORT'))
  const issuer = `http://localhost:${port}`
  const provider = new Provider(issuer, await configure())
  provider.on('server_error', (_ctx, error) => printError(`identity provider: ${error.stack ?? error.message}`))
  const server = provider.listen(port, HOST)
  server.once('error', (error) => fail(error))
  server.once('listening', () => {
    print(`identity provider listens at ${issuer}`)
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      server.close(() => process.exit(0))
      server.closeAllConnections()
    })
  }
}

function fail(error: unknown): never {
  printError(error instanceof Error ? error.message : String(error))
  process.exit(1)
}

await main().catch(fail)
