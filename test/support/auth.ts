import { randomBytes, randomInt } from 'node:crypto'
import { type Answer, call } from './http.ts'

/** Prefix of every test password, so that logs can be searched for them. */
const PASSWORD_MARK = 'pw-of-a-test-'
export const newPassword = (): string => `${PASSWORD_MARK}${randomBytes(8).toString('hex')}`

export const JWT_SECRET = `jwt-secret-of-tests-${'0123456789abcdef'.repeat(2)}`
export const ADMIN = { email: 'admin@example.com', password: `${PASSWORD_MARK}admin` }
/** Key of stored secrets. */
export const SECRETS_KEY = '5ec7e7'.repeat(11).slice(0, 64)

/** One trusted proxy lets a test give each request its own client address in X-Forwarded-For. */
const COMMON = { AUTH_JWT_SECRET: JWT_SECRET, TRUSTED_PROXIES: '1', AUTH_BASE_URL: 'http://localhost:9300' }
export const FULL_MODE: Record<string, string> = { AUTH_MODE: 'full', SECRETS_ENCRYPTION_KEY: SECRETS_KEY, ...COMMON }
export const ADMIN_VARIABLES: Record<string, string> = {
  AUTH_ADMIN_EMAIL: ADMIN.email,
  AUTH_ADMIN_PASSWORD: ADMIN.password,
}
export const ADMIN_MODE: Record<string, string> = { AUTH_MODE: 'admin', ...COMMON, ...ADMIN_VARIABLES }

/** Headers with a random client address in a random network, so that rate limits of neither interfere. */
export const fromSomewhere = (): Record<string, string> => ({
  'X-Forwarded-For': `${randomInt(11, 100)}.${randomBytes(3).join('.')}`,
})

export const bearer = (token: string): Record<string, string> => ({ Authorization: `Bearer ${token}` })

export type TestUser = {
  id: string
  email: string
  password: string
  accessToken: string
  refreshToken: string
  headers: Record<string, string>
}

/** Registers a new user in a service running in mode `full`. The user is a member of the default organization. */
export async function registerUser(url: string, name = 'A user'): Promise<TestUser> {
  const email = `user-${randomBytes(6).toString('hex')}@example.com`
  const password = newPassword()
  const body = { email, password, name }
  return asUser(url, { email, password }, await call(url, 'POST', '/v1/auth/register', body, fromSomewhere()))
}

export async function logInUser(url: string, credentials: { email: string; password: string }): Promise<TestUser> {
  return asUser(url, credentials, await call(url, 'POST', '/v1/auth/login', credentials, fromSomewhere()))
}

async function asUser(
  url: string,
  credentials: { email: string; password: string },
  answer: Answer,
): Promise<TestUser> {
  const { status, body } = answer
  if (status !== 200 && status !== 201) throw new Error(`sign-in: ${status} ${JSON.stringify(body)}`)
  const headers = bearer(body.access_token)
  const me = await call(url, 'GET', '/v1/auth/me', undefined, headers)
  return { ...credentials, id: me.body.id, accessToken: body.access_token, refreshToken: body.refresh_token, headers }
}

/** Creates an organization owned by the user. Requests with the returned headers act in it. */
export async function addOwnOrganization(
  url: string,
  user: TestUser,
  name = 'Own',
): Promise<{ id: string; headers: Record<string, string> }> {
  const { status, body } = await call(url, 'POST', '/v1/orgs', { name }, user.headers)
  if (status !== 201) throw new Error(`organization: ${status} ${JSON.stringify(body)}`)
  return { id: body.id, headers: { ...user.headers, 'X-Org-Id': body.id } }
}

/** Creates an API key for the user in the organization that the headers select. */
export async function createApiKey(
  url: string,
  headers: Record<string, string>,
  more: object = {},
): Promise<{ id: string; key: string }> {
  const { status, body } = await call(url, 'POST', '/v1/auth/api-keys', { name: 'Test', ...more }, headers)
  if (status !== 201) throw new Error(`API key: ${status} ${JSON.stringify(body)}`)
  return body
}
