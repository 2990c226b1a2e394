import { spawn } from 'node:child_process'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { freePorts } from '../../dev/services/index.ts'
import { guardAgainstLeak } from '../../dev/services/process.ts'
import { type Browser, beginSignIn, callbackOf, type Page } from './browser.ts'
import { PATIENCE_MS } from './http.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export const CLIENT = { clientId: 'client-of-a-test', clientSecret: 'client-secret-of-a-test' }
export const REDIRECT_URI = callbackOf('idpa')

export type TestIdentityProvider = { issuer: string; stop(): Promise<void> }

/** Starts dev/identity-provider.ts in a process of its own. */
export async function startIdentityProvider(
  claims: 'id_token' | 'userinfo' = 'id_token',
): Promise<TestIdentityProvider> {
  const [port = 0] = await freePorts(1)
  const script = path.join(ROOT, 'dev', 'identity-provider.ts')
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script], {
    env: {
      ...process.env,
      IDENTITY_PROVIDER_PORT: String(port),
      IDENTITY_PROVIDER_CLIENT_ID: CLIENT.clientId,
      IDENTITY_PROVIDER_CLIENT_SECRET: CLIENT.clientSecret,
      IDENTITY_PROVIDER_REDIRECT_URIS: REDIRECT_URI,
      IDENTITY_PROVIDER_CLAIMS: claims,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  if (child.pid === undefined) throw new Error('the identity provider could not be started')
  const guard = guardAgainstLeak(child.pid, 'SIGKILL')
  void exited.then(() => guard.release())
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the identity provider was not ready in time')), PATIENCE_MS)
    child.once('exit', () => reject(new Error('the identity provider has ended')))
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (!line.includes('listens at')) return
      clearTimeout(timer)
      resolve()
    })
  })
  const stop = async () => {
    child.kill('SIGTERM')
    await exited
  }
  return { issuer: `http://localhost:${port}`, stop }
}

/** Signs in at the provider by submitting its forms. Returns the callback URL without opening it. */
export async function signInAtProvider(browser: Browser, login: string, returnTo?: string): Promise<string> {
  let page = await openForm(browser, await beginSignIn(browser, 'idpa', returnTo))
  for (let forms = 0; forms < 3; forms++) {
    const prompt = /name="prompt" value="(\w+)"/.exec(page.text)?.[1]
    const action = /action="([^"]+)"/.exec(page.text)?.[1]
    if (prompt === undefined || action === undefined) throw new Error(`no form at ${page.url}: ${page.text}`)
    const form = { prompt, ...(prompt === 'login' && { login, password: 'any' }) }
    const answer = await browser.submit(new URL(action, page.url).href, form as Record<string, string>)
    const { page: next, reached } = await browser.followTo(answer, REDIRECT_URI)
    if (reached !== undefined) return reached
    page = next
  }
  throw new Error(`the provider asks without end, at last ${page.url}`)
}

/** Opens the provider's first form. */
export async function openForm(browser: Browser, begun: Page): Promise<Page> {
  const { page } = await browser.followTo(begun, REDIRECT_URI)
  return page
}
