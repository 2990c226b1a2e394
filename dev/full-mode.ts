/** Sign-in for `npm run start:full`, with an OpenID provider on this machine. */
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import { DATA_FOLDER, ROOT, readApiPort, readIdentityProviderPort } from './development.ts'
import { stopRecordedProcess } from './services/pid-file.ts'
import { type Service, startProcess } from './services/process.ts'
import { print, printError } from './terminal.ts'

export type FullMode = {
  environment: Record<string, string>
  /** Lines for the terminal that say where and how to sign in. */
  description: string[]
  stop(): Promise<void>
}

const NAME = 'identity-provider'
const PROVIDER_FOLDER = path.join(DATA_FOLDER, NAME)
const SECRETS_FILE = path.join(DATA_FOLDER, 'full-mode.json')
const CLIENT_ID = 'agent-session-service'
const PROBE_TIMEOUT_MS = 3000

const Secrets = z.object({
  jwtSecret: z.string(),
  adminPassword: z.string(),
  clientSecret: z.string(),
  encryptionKey: z.string(),
})
type Secrets = z.infer<typeof Secrets>

const makeSecrets = (): Secrets => ({
  jwtSecret: randomBytes(32).toString('hex'),
  adminPassword: randomBytes(9).toString('base64url'),
  clientSecret: randomBytes(32).toString('hex'),
  encryptionKey: randomBytes(32).toString('hex'),
})

/** Reads the secrets. Creates missing ones once, so that tokens and stored secrets outlive a restart. */
async function readSecrets(): Promise<Secrets> {
  const made = await readMadeSecrets()
  const complete = Secrets.safeParse(made)
  if (complete.success) return complete.data
  const secrets = { ...makeSecrets(), ...made }
  await writeFile(SECRETS_FILE, JSON.stringify(secrets), { mode: 0o600 })
  return secrets
}

async function readMadeSecrets(): Promise<Partial<Secrets>> {
  const text = await readFile(SECRETS_FILE, 'utf8').catch(() => undefined)
  return text === undefined ? {} : Secrets.partial().parse(JSON.parse(text))
}

/** Returns the variables with which `npm start` reads what was stored in mode full: both use one database. */
export async function fullModeKeys(): Promise<Record<string, string>> {
  const { encryptionKey } = await readMadeSecrets()
  return encryptionKey === undefined ? {} : fillIn({ SECRETS_ENCRYPTION_KEY_PREVIOUS: encryptionKey })
}

/**
 * Fills in defaults for variables that the user has not set. An empty variable counts as not set, as it does for the
 * service.
 */
function fillIn(defaults: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, process.env[name] || value]))
}

/** Returns false when the user has configured a provider, so that none is started here. */
const needsProvider = (): boolean => !process.env.AUTH_IDPA_ISSUER && !process.env.AUTH_IDPA_CLIENT_ID

export const listFullModePorts = () =>
  needsProvider()
    ? [{ variable: 'IDENTITY_PROVIDER_PORT', purpose: 'the identity provider', port: readIdentityProviderPort() }]
    : []

/** Stops the provider that an earlier run left behind when it was killed, so that its port is free again. */
export async function stopEarlierProvider(): Promise<void> {
  await stopRecordedProcess(path.join(PROVIDER_FOLDER, `${NAME}.pid`), NAME, 'SIGTERM')
}

async function startProvider(environment: Record<string, string>, redirectUri: string): Promise<Service> {
  const port = readIdentityProviderPort()
  const url = `http://localhost:${port}`
  const service = await startProcess({
    name: NAME,
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', path.join(ROOT, 'dev', `${NAME}.ts`)],
    dataDir: PROVIDER_FOLDER,
    url,
    stopSignal: 'SIGTERM',
    log: print,
    env: {
      IDENTITY_PROVIDER_PORT: String(port),
      IDENTITY_PROVIDER_CLIENT_ID: environment.AUTH_IDPA_CLIENT_ID,
      IDENTITY_PROVIDER_CLIENT_SECRET: environment.AUTH_IDPA_CLIENT_SECRET,
      IDENTITY_PROVIDER_REDIRECT_URIS: redirectUri,
    },
    probe: async () => {
      const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS)
      const answer = await fetch(`${url}/.well-known/openid-configuration`, { signal })
      await answer.body?.cancel()
      if (!answer.ok) throw new Error(`it answered ${answer.status}`)
    },
  })
  print(`Identity provider: ready at ${url} (log: ${service.logPath})`)
  return service
}

function describe(environment: Record<string, string>, prefix: string): string[] {
  const { AUTH_ADMIN_EMAIL: email, AUTH_BASE_URL: baseUrl } = environment
  // A password that the user has set is not printed.
  const password = process.env.AUTH_ADMIN_PASSWORD ? '…' : environment.AUTH_ADMIN_PASSWORD
  const login = `${baseUrl}${prefix}/v1/auth/login`
  const body = JSON.stringify({ email, password })
  return [
    `  Sign in      ${baseUrl}${prefix}/v1/auth/oauth/idpa`,
    ...(needsProvider() ? ['               in a browser, with any name and any password'] : []),
    `  Admin        ${email}, password ${password}`,
    '',
    '  Try it: sign in as the administrator, and ask who that is.',
    '',
    `TOKEN=$(curl -sX POST ${login} -H 'content-type: application/json' -d '${body}' | grep -o '"access_token": *"[^"]*"' | cut -d '"' -f 4)`,
    `curl -s ${baseUrl}${prefix}/v1/auth/me -H "authorization: Bearer $TOKEN"`,
  ]
}

export async function startFullMode(): Promise<FullMode> {
  const secrets = await readSecrets()
  const environment = fillIn({
    AUTH_MODE: 'full',
    AUTH_JWT_SECRET: secrets.jwtSecret,
    SECRETS_ENCRYPTION_KEY: secrets.encryptionKey,
    AUTH_BASE_URL: `http://localhost:${readApiPort()}`,
    AUTH_ADMIN_EMAIL: 'admin@example.com',
    AUTH_ADMIN_PASSWORD: secrets.adminPassword,
    ...(needsProvider() && {
      AUTH_IDPA_ISSUER: `http://localhost:${readIdentityProviderPort()}`,
      AUTH_IDPA_CLIENT_ID: CLIENT_ID,
      AUTH_IDPA_CLIENT_SECRET: secrets.clientSecret,
    }),
  })
  const prefix = (process.env.API_PREFIX ?? '').replace(/\/+$/, '')
  const callback = `${environment.AUTH_BASE_URL?.replace(/\/+$/, '')}${prefix}/v1/auth/callback/idpa`
  const provider = needsProvider()
    ? await startProvider(environment, process.env.AUTH_IDPA_REDIRECT_URI || callback)
    : undefined
  let isStopping = false
  void provider?.exited.then((reason) => {
    if (!isStopping)
      printError(`\n!!! The identity provider ended by itself (${reason}). Its log: ${provider.logPath}\n`)
  })
  const stop = async () => {
    isStopping = true
    await provider?.stop()
  }
  return { environment, description: describe(environment, prefix), stop }
}
