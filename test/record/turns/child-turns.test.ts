import { asUuid, newUuid } from '../../../domain/kit/ids.ts'
import { createMessage } from '../../../domain/messages/create.ts'
import { cancelLeftChildren } from '../../../domain/turns/sweep/left-children.ts'
import { call, createScriptedSession } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { startService, type TestService } from '../../support/service.ts'
import { getTurn, listTurns, post } from '../../support/turns.ts'

const ORGANIZATION = '00000000-0000-0000-0000-000000000001'
const message = { message: { content: [{ type: 'text' as const, text: 'Go' }] } }
const by = (userId: string) => ({ organizationId: ORGANIZATION, userId, role: 'member', apiKeyId: null }) as const

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})
afterAll(() => service.stop())

it('a child turn is started by nobody but its caller, and is cancelled without one', async () => {
  const { deps } = service.platform
  const session = await createScriptedSession(service.url, [{ text: 'x' }])
  const sessionId = asUuid<'session'>(toUuid(session))
  const asked = { ...message, on_busy: 'reject' as const }
  const { turnUuid } = await createMessage(deps, by(newUuid()), sessionId, asked, { ancestors: [newUuid()] })
  await post(service.url, session, 'Go', { budget: { limit_tokens: 1000 } })
  const [, behind] = await listTurns(service.url, session)
  await call(service.url, 'POST', `/v1/sessions/${session}/cancel`, { turn_id: behind?.id })
  expect(await deps.workflows.readTurnState(turnUuid)).toBe('unknown')
  expect(await cancelLeftChildren(deps)).toBe(1)
  expect((await listTurns(service.url, session)).map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
})

it('only the author of a turn steers it', async () => {
  const { deps } = service.platform
  const session = await createScriptedSession(service.url, [{ text: 'x' }])
  const sessionId = asUuid<'session'>(toUuid(session))
  const [alice, bob] = [by(newUuid()), by(newUuid())]
  const { turnUuid } = await createMessage(deps, alice, sessionId, message)
  const steer = { ...message, on_busy: 'steer' as const }
  expect((await createMessage(deps, alice, sessionId, steer)).turnUuid).toBe(turnUuid)
  const queued = await createMessage(deps, bob, sessionId, steer)
  expect(queued.turnUuid).not.toBe(turnUuid)
  expect((await getTurn(service.url, session, `turn_${queued.turnUuid.replaceAll('-', '')}`)).user_id).toBe(bob.userId)
})
