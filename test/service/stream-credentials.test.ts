import { findEnded } from '../../domain/identity/auth/caller.ts'
import { createTokens } from '../../domain/identity/auth/tokens.ts'
import {
  ADMIN,
  ADMIN_VARIABLES,
  addOwnOrganization,
  bearer,
  createApiKey,
  FULL_MODE,
  JWT_SECRET,
  logInUser,
  registerUser,
  type TestUser,
} from '../support/auth.ts'
import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  listEvents,
  textMessage,
  waitFor,
} from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { startService, type TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'

let service: TestService
let user: TestUser
let path: string
beforeAll(async () => {
  service = await startService({
    environment: { ...FULL_MODE, ...ADMIN_VARIABLES },
    sse: { credentialCheckMs: 500 },
  })
  user = await registerUser(service.url)
  path = `/v1/sessions/${await createSession(service.url, undefined, {}, user.headers)}/sse`
})
afterAll(() => service.stop())

const open = async (headers: Record<string, string>): Promise<OpenStream> => {
  const stream = await openStream(service.url, path, { headers })
  expect(stream.status).toBe(200)
  return stream
}
const memberPath = (id: string) => `/v1/orgs/org_00000000000000000000000000000001/members/${id}`

/** Expects that the stream ends because its credential did. */
async function expectEndOf(stream: OpenStream): Promise<void> {
  expect(await stream.ended).toBe('whole')
  expect(stream.frames.at(-1)).toMatchObject({
    event: 'disconnecting',
    data: { reason: 'credential_ended', retry_ms: 100 },
  })
}

describe('a stream', () => {
  it('ends with its access token', async () => {
    const { userId, loginId } = (await service.platform.deps.auth.tokens.readAccess(user.accessToken)) ?? fail()
    const short = createTokens({ secret: Buffer.from(JWT_SECRET), accessSeconds: 10, refreshSeconds: 900 })
    const { access_token } = await short.issue({ userId, loginId, generation: 0 })
    const [ending, other] = await Promise.all([open(bearer(access_token)), open(user.headers)])
    await expectEndOf(ending)
    expectError(await call(service.url, 'GET', path, undefined, bearer(access_token)), 401, /^Authentication required$/)
    const me = await call(service.url, 'GET', '/v1/auth/me', undefined, user.headers)
    expect(me.status).toBe(200)
    expect(other.frames.some(({ event }) => event === 'disconnecting')).toBe(false)
    other.close()
  })

  it('ends when its credential is revoked, whatever kind it is, and others go on', async () => {
    const { db } = service.platform.deps
    const logins = await Promise.all(Array.from({ length: 3 }, () => logInUser(service.url, user)))
    const keys = await Promise.all(Array.from({ length: 3 }, () => createApiKey(service.url, user.headers)))
    const [loggedOut, reused, removed] = logins
    const [revoked, expired, kept] = keys
    if (!loggedOut || !reused || !removed || !revoked || !expired || !kept) return fail()
    const admin = await logInUser(service.url, ADMIN)
    const headers = [...logins.map((login) => login.headers), bearer(revoked.key), bearer(expired.key)]
    const ending = await Promise.all(headers.map(open))
    const monitoring = await openStream(service.url, '/v1/durable/sse', { headers: admin.headers })
    const others = await Promise.all([
      open(user.headers),
      open(bearer(kept.key)),
      open({ Cookie: `access_token=${user.accessToken}` }),
    ])

    await call(service.url, 'POST', '/v1/auth/logout', undefined, loggedOut.headers)
    const refresh = () => call(service.url, 'POST', '/v1/auth/refresh', { refresh_token: reused.refreshToken })
    expect([(await refresh()).status, (await refresh()).status]).toEqual([200, 401])
    await db.refreshToken.deleteMany({ where: { userId: admin.id } })
    await db.refreshToken.deleteMany({
      where: { id: (await service.platform.deps.auth.tokens.readAccess(removed.accessToken))?.loginId ?? '' },
    })
    await call(service.url, 'DELETE', `/v1/auth/api-keys/${revoked.id}`, undefined, user.headers)
    await db.apiKey.update({ where: { id: expired.id }, data: { expiresAt: new Date() } })

    for (const stream of ending) await expectEndOf(stream)
    await expectEndOf(monitoring)
    const message = await call(
      service.url,
      'POST',
      path.replace('/sse', '/messages?wait=300'),
      textMessage('Hello'),
      user.headers,
    )
    expect(message.status).toBe(200)
    for (const stream of others) {
      await stream.until(({ event }) => event === 'session.idled')
      stream.close()
    }
  })

  it('is not the only one: a waiting request is refused too', async () => {
    const leaving = await logInUser(service.url, user)
    const session = await createScriptedSession(
      service.url,
      [{ text: 'late', delay_ms: 60_000 }],
      {},
      {},
      leaving.headers,
    )
    const waiting = call(
      service.url,
      'POST',
      `/v1/sessions/${session}/messages?wait=300`,
      textMessage('Hello'),
      leaving.headers,
    )
    await waitFor(async () => (await listEvents(service.url, session, '', user.headers)).length > 0, 'the message')
    await call(service.url, 'POST', '/v1/auth/logout', undefined, leaving.headers)
    // The answer comes when the turn ends, and another user cancels it.
    const cancelled = await call(service.url, 'POST', `/v1/sessions/${session}/cancel`, undefined, user.headers)
    expect(cancelled.status).toBe(200)
    expectError(await waiting, 401, /^Authentication required$/)
  })

  it('ends in one organization, and continues in another', async () => {
    const { db } = service.platform.deps
    const { headers: own, id } = await addOwnOrganization(service.url, user)
    const session = await createSession(service.url, undefined, {}, own)
    const leaving = await openStream(service.url, `/v1/sessions/${session}/sse`, { headers: own })
    const staying = await open(user.headers)
    await db.member.deleteMany({ where: { userId: user.id, organizationId: toUuid(id) } })
    await expectEndOf(leaving)
    await call(service.url, 'POST', path.replace('/sse', '/messages'), textMessage('Hello'), user.headers)
    await staying.until(({ event }) => event === 'session.idled')
    staying.close()
  })

  it('ends with its user’s membership', async () => {
    const admin = await logInUser(service.url, ADMIN)
    const leaving = await registerUser(service.url)
    const { key } = await createApiKey(service.url, leaving.headers)
    const streams = await Promise.all([open(leaving.headers), open(bearer(key))])
    const removed = await call(service.url, 'DELETE', memberPath(leaving.id), undefined, admin.headers)
    expect(removed.status).toBe(204)
    for (const stream of streams) await expectEndOf(stream)
  })

  it('of the monitoring ends with the role that it needs, and others go on', async () => {
    const admin = await logInUser(service.url, ADMIN)
    const operator = await registerUser(service.url)
    const give = (role: string) => call(service.url, 'PATCH', memberPath(operator.id), { role }, admin.headers)
    expect((await give('admin')).status).toBe(200)
    const credentials = [operator.headers, bearer((await createApiKey(service.url, operator.headers)).key)]
    const monitor = (headers: Record<string, string>) => openStream(service.url, '/v1/durable/sse', { headers })
    const monitoring = await Promise.all(credentials.map(monitor))
    const others = [...(await Promise.all(credentials.map(open))), await monitor(admin.headers)]
    expect((await give('member')).status).toBe(200)
    for (const stream of monitoring) await expectEndOf(stream)
    for (const stream of others) {
      expect(stream.frames.some(({ event }) => event === 'disconnecting')).toBe(false)
      stream.close()
    }
  })

  it('stays open while its credential cannot be checked, and ends once it is found revoked', async () => {
    const { db, log } = service.platform.deps
    const leaving = await logInUser(service.url, user)
    const stream = await open(leaving.headers)
    const warn = jest.spyOn(log, 'warn')
    const failures = () => warn.mock.calls.filter(([, what]) => what === 'credentials of streams could not be checked')
    await db.$executeRaw`ALTER TABLE api_keys RENAME TO api_keys_away`
    try {
      await waitFor(async () => failures().length > 0, 'a check that fails')
    } finally {
      await db.$executeRaw`ALTER TABLE api_keys_away RENAME TO api_keys`
      warn.mockRestore()
    }
    // Events after the failed check are still delivered.
    const message = path.replace('/sse', '/messages')
    const from = stream.frames.length
    expect((await call(service.url, 'POST', message, textMessage('Still there?'), leaving.headers)).status).toBe(201)
    await stream.until((frame) => stream.frames.indexOf(frame) >= from && frame.event === 'session.idled')
    await call(service.url, 'POST', '/v1/auth/logout', undefined, leaving.headers)
    await expectEndOf(stream)
  })
})

describe('the check of credentials', () => {
  it('finds unknown credentials, and nothing in an empty list', async () => {
    const { deps } = service.platform
    const { id, organizationId } = { id: crypto.randomUUID(), organizationId: crypto.randomUUID() }
    expect(await findEnded(deps, [{ id, organizationId }])).toEqual(new Set([`${id} ${organizationId}`]))
    expect(await findEnded(deps, [])).toEqual(new Set())
  })
})

function fail(): never {
  throw new Error('this cannot be')
}
