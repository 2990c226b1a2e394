import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { newUuid } from '../../domain/kit/ids.ts'
import { newSecret } from '../../domain/organization-events/webhooks/secrets.ts'
import { deleteExpired } from '../../domain/upkeep/retention.ts'
import { call, createScriptedSession, expectError, type Json, unknownId, waitFor } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { isVerified, type Receiver, startReceiver } from '../support/receiver.ts'
import { startService, type TestService } from '../support/service.ts'
import { withClient } from '../support/temporal.ts'
import { callsOf, clientTool, post, postAndAsk, submit } from '../support/turns.ts'

const HOOKS = '/v1/webhooks'
const DONE = [{ text: 'Done.' }]
const ENDS = ['turn.completed', 'turn.failed', 'turn.waiting']

let service: TestService
let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
})
afterAll(async () => {
  await service.stop()
  await receiver.close()
})

let number = 0
type Hook = { id: string; path: string; secret: string; place: string }
/** Adds a webhook with a path of its own at the receiver. */
async function addHook(more: object = {}): Promise<Hook> {
  const place = `/hook-${++number}`
  const { status, body } = await call(service.url, 'POST', HOOKS, { url: receiver.url + place, events: ENDS, ...more })
  expect({ status, body }).toMatchObject({ status: 201 })
  return { id: body.id, path: `${HOOKS}/${body.id}`, secret: body.secret, place }
}
const remove = ({ path }: Hook) => call(service.url, 'DELETE', path)
const deliveriesOf = async ({ path }: Hook, query = ''): Promise<Json[]> =>
  (await call(service.url, 'GET', `${path}/deliveries${query}`)).body.data
const untilReceived = ({ place }: Hook, count: number) =>
  waitFor(async () => receiver.at(place).length >= count && receiver.at(place), `${count} requests to ${place}`)
const untilStatus = (hook: Hook, status: string, count = 1) =>
  waitFor(async () => {
    const found = await deliveriesOf(hook, `?status=${status}`)
    return found.length >= count && found
  }, `${count} deliveries of ${hook.id} to be ${status}`)
/** Waits until the failure of a first attempt is recorded. */
const untilFailed = (hook: Hook) =>
  waitFor(async () => (await deliveriesOf(hook))[0]?.error != null, 'a failed attempt')
/** Has the receiver answer the requests to a path in some way. */
function answerAt({ place }: Hook, answer: (response: ServerResponse) => void): void {
  const before = receiver.answer
  receiver.answer = (response, received) => (received.path === place ? answer(response) : before(response, received))
}
const answerStatus =
  (status: number, headers = {}) =>
  (response: ServerResponse) =>
    response.writeHead(status, headers).end('no')
const redeliver = ({ path }: Hook, { id }: Json) => call(service.url, 'POST', `${path}/deliveries/${id}/redeliver`)

describe('a webhook', () => {
  it('is created with a secret that is shown once, changed and deleted', async () => {
    const events = ['turn.failed', 'turn.failed', 'budget.reached']
    const agent_id = (await call(service.url, 'POST', '/v1/agents', { name: 'A', system_prompt: 'B' })).body.id
    const input = { url: 'https://hooks.example/a?b=1', events, agent_id, description: 'Ours' }
    const { status, body, headers } = await call(service.url, 'POST', HOOKS, input)
    const { secret, ...hook } = body
    expect({ status, hook }).toMatchObject({
      status: 201,
      hook: { ...input, events: ['turn.failed', 'budget.reached'], enabled: true, disabled_reason: null },
    })
    expect(Buffer.from(secret.replace('whsec_', ''), 'base64')).toHaveLength(32)
    expect(headers.get('cache-control')).toBe('no-store')
    const path = `${HOOKS}/${hook.id}`
    expect((await call(service.url, 'GET', path)).body).toEqual(hook)
    expect((await call(service.url, 'GET', HOOKS)).body.data).toContainEqual(hook)
    const changes = {
      url: 'https://hooks.example/c',
      events: ['turn.completed'],
      description: 'Theirs',
      enabled: false,
    }
    const changed = await call(service.url, 'PATCH', path, { ...changes, agent_id: '' })
    expect(changed.body).toMatchObject({ ...changes, agent_id: null })
    expectError(await call(service.url, 'POST', `${path}/test`), 409, /disabled; PATCH its enabled/)
    expect((await call(service.url, 'DELETE', path)).status).toBe(204)
    for (const [method, at] of [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/test'],
      ['GET', '/deliveries'],
    ]) {
      expectError(await call(service.url, method ?? '', path + at, method === 'PATCH' ? {} : undefined), 404)
    }
    expect((await call(service.url, 'GET', HOOKS)).body.data).not.toContainEqual(hook)
  })

  const secretOf = (bytes: number) => `whsec_${randomBytes(bytes).toString('base64')}`
  it.each<[what: string, change: object, sentence: RegExp]>([
    ['no events', { events: [] }, /^events: must have at least one/],
    ['an unknown event', { events: ['turn.started'] }, /^events/],
    ['no URL', { url: 'hooks.example' }, /^url: must be an http or https URL/],
    ['a password in its URL', { url: 'https://a:b@hooks.example/' }, /^url: must be an http or https URL/],
    ['a metadata service', { url: 'http://169.254.169.254/' }, /^url: .*metadata service/],
    ['an unknown agent', { agent_id: unknownId('agent') }, /^agent_id: there is no agent/],
    ['a secret without its prefix', { secret: randomBytes(32).toString('base64') }, /^secret: must be whsec_ followed/],
    ['a secret of hex', { secret: `whsec_${randomBytes(32).toString('hex').slice(1)}` }, /^secret: must be whsec_/],
    ['a secret that is too short', { secret: secretOf(23) }, /^secret: must be whsec_ followed by 24 to 64/],
    ['a secret that is too long', { secret: secretOf(65) }, /^secret: must be whsec_/],
    ['a secret that is not base64', { secret: `whsec_${'!'.repeat(40)}` }, /^secret: must be whsec_/],
  ])('is refused with %s', async (_, change, sentence) => {
    const input = { url: 'https://hooks.example/', events: ENDS, ...change }
    expectError(await call(service.url, 'POST', HOOKS, input), 400, sentence)
  })

  it('is refused at the address of the service itself', async () => {
    expectError(await call(service.url, 'POST', HOOKS, { url: service.url, events: ENDS }), 400, /this service itself/)
  })

  it('shows its secret again to the same request only, as long as that is the current one', async () => {
    const once = { 'Idempotency-Key': newUuid() }
    const input = { url: receiver.url, events: ['budget.reached'] }
    const create = () => call(service.url, 'POST', HOOKS, input, once)
    const [first, again] = [await create(), await create()]
    expect(again.body).toEqual(first.body)
    const uuid = toUuid(first.body.id)
    const kept = await service.platform.deps.db.idempotencyKey.findFirstOrThrow({ where: { uuid } })
    expect(kept.answer).toContain(first.body.id)
    expect(kept.answer).not.toContain('whsec_')
    const other = { 'Idempotency-Key': newUuid() }
    const rotate = () => call(service.url, 'POST', `${HOOKS}/${first.body.id}/rotate-secret`, undefined, other)
    const [rotated, repeated] = [await rotate(), await rotate()]
    expect(repeated.body).toEqual(rotated.body)
    expect(rotated.body.secret).not.toBe(first.body.secret)
    expectError(await create(), 409, /was replaced since/)
  })
})

describe('a delivery', () => {
  it('brings each event of a session in order, signed as Standard Webhooks says', async () => {
    const hook = await addHook()
    const tool_calls = [{ id: 'ask', name: 'ask', arguments: { text: 'Which town?' } }]
    const agent = { tools: [clientTool('ask')] }
    const id = await createScriptedSession(service.url, [{ tool_calls }, ...DONE], agent)
    const turn = await postAndAsk(service.url, id)
    const [waiting] = await untilReceived(hook, 1)
    expect(waiting?.event).toMatchObject({
      type: 'turn.waiting',
      data: { session_id: id, turn_id: turn.id ?? waiting?.event.data.turn_id },
    })
    expect(waiting?.event.data.turn).toMatchObject({
      status: 'waiting',
      pending_tool_calls: [{ id: 'ask', name: 'ask', kind: 'client_tool', arguments: { text: 'Which town?' } }],
    })
    await submit(service.url, id, [{ tool_call_id: 'ask', result: 'Lisbon' }])
    const all = await untilReceived(hook, 2)
    expect(all.map(({ event }) => event.type)).toEqual(['turn.waiting', 'turn.completed'])
    expect(all.every((one) => isVerified(hook.secret, one))).toBe(true)
    expect(all.some((one) => isVerified(newSecret(), one))).toBe(false)
    const [completed, first] = await untilStatus(hook, 'delivered', 2)
    expect([first.id, completed.id]).toEqual(all.map((one) => one.id))
    expect(completed).toMatchObject({
      type: 'turn.completed',
      session_id: id,
      attempts: 1,
      http_status: 204,
      error: null,
    })
    await remove(hook)
  })

  it('goes to the webhooks that want the type and the agent', async () => {
    const id = await createScriptedSession(service.url, DONE)
    const agent_id = (await call(service.url, 'GET', `/v1/sessions/${id}`)).body.agent_id
    const other = await createScriptedSession(service.url, DONE)
    const ofAgent = await addHook({ agent_id })
    const ofFailures = await addHook({ events: ['turn.failed'] })
    const ofAll = await addHook()
    for (const session of [other, id]) {
      await post(service.url, session)
      await untilReceived(ofAll, session === other ? 1 : 2)
    }
    await untilReceived(ofAgent, 1)
    expect((await deliveriesOf(ofAgent)).map(({ session_id }) => session_id)).toEqual([id])
    expect(await deliveriesOf(ofFailures)).toEqual([])
    for (const hook of [ofAgent, ofFailures, ofAll]) await remove(hook)
  })

  it('is signed by two secrets after a rotation, and never by three', async () => {
    const own = `whsec_${randomBytes(24).toString('base64')}`
    const hook = await addHook({ secret: own })
    expect(hook.secret).toBe(own)
    const secrets = [own]
    for (let rotation = 1; rotation <= 3; rotation++) {
      expect((await call(service.url, 'POST', `${hook.path}/test`)).status).toBe(201)
      const last = (await untilReceived(hook, rotation)).at(-1)
      if (last === undefined) throw new Error('nothing was received')
      expect(last.event).toMatchObject({ type: 'webhook.test' })
      expect(secrets.map((secret) => isVerified(secret, last))).toEqual(
        secrets.map((_, index) => index >= secrets.length - 2),
      )
      expect(String(last.headers['webhook-signature']).split(' ')).toHaveLength(Math.min(secrets.length, 2))
      const rotated = await call(service.url, 'POST', `${hook.path}/rotate-secret`, {})
      expect(Date.parse(rotated.body.former_secret_until) - Date.now()).toBeGreaterThan(23 * 3_600_000)
      secrets.push(rotated.body.secret)
    }
    // The day is over.
    const past = new Date(Date.now() - 1000)
    await service.platform.deps.db.webhook.update({ where: { id: toUuid(hook.id) }, data: { formerSecretUntil: past } })
    await call(service.url, 'POST', `${hook.path}/test`)
    const last = (await untilReceived(hook, 4)).at(-1)
    expect(String(last?.headers['webhook-signature']).split(' ')).toHaveLength(1)
    await remove(hook)
  })

  it('is attempted again with the same id and body, before the next one of its session, which may be deleted', async () => {
    const hook = await addHook()
    answerAt(hook, answerStatus(503, { 'Retry-After': '3600' }))
    const id = await createScriptedSession(service.url, DONE)
    await post(service.url, id)
    const [failed] = await waitFor(async () => {
      const all = await deliveriesOf(hook)
      return all[0]?.attempts === 1 && all[0].error !== null && all
    }, 'a failed attempt')
    expect(failed).toMatchObject({
      status: 'pending',
      http_status: 503,
      error: 'The receiver answered with the status 503: no',
    })
    expect(Date.parse(failed.next_attempt_at) - Date.now()).toBeGreaterThan(3_000_000)
    await post(service.url, id)
    await waitFor(async () => (await deliveriesOf(hook)).length === 2, 'the second event')
    expect((await call(service.url, 'DELETE', `/v1/sessions/${id}`)).status).toBe(204)
    answerAt(hook, answerStatus(200))
    expect((await redeliver(hook, failed)).body).toMatchObject({ status: 'pending' })
    const all = await untilReceived(hook, 3)
    expect(all[1]).toMatchObject({ id: failed.id, body: all[0]?.body })
    expect(all[2]?.id).not.toBe(failed.id)
    expect(all[2]?.event.data).toMatchObject({ session_id: id, turn: null })
    expect(all.every((one) => isVerified(hook.secret, one))).toBe(true)
    const [second] = await untilStatus(hook, 'delivered', 2)
    // Again, although it was delivered.
    await redeliver(hook, second)
    const again = (await untilReceived(hook, 4)).at(-1)
    expect(again).toMatchObject({ id: second.id, body: all[2]?.body })
    await remove(hook)
  })

  it('to one session waits for no other session', async () => {
    const hook = await addHook()
    const [stuck, other] = [
      await createScriptedSession(service.url, DONE),
      await createScriptedSession(service.url, DONE),
    ]
    receiver.answer = (
      (before) => (response, received) =>
        received.event.data.session_id === stuck ? response.writeHead(500).end() : before(response, received)
    )(receiver.answer)
    await post(service.url, stuck)
    await untilReceived(hook, 1)
    await post(service.url, other)
    expect((await untilStatus(hook, 'delivered')).map(({ session_id }) => session_id)).toEqual([other])
    await remove(hook)
  })

  it('disables its webhook when the receiver is gone, and ends its workflows', async () => {
    const hook = await addHook()
    answerAt(hook, answerStatus(500))
    const waits = await createScriptedSession(service.url, DONE)
    await post(service.url, waits)
    await untilReceived(hook, 1)
    answerAt(hook, answerStatus(410))
    await post(service.url, await createScriptedSession(service.url, DONE))
    await untilStatus(hook, 'failed', 2)
    expect((await call(service.url, 'GET', hook.path)).body).toMatchObject({
      enabled: false,
      disabled_reason: 'The receiver answered 410 Gone.',
    })
    const workflowId = `${hook.id}/${toUuid(waits)}`
    await withClient(service, (client) =>
      waitFor(
        async () => (await client.workflow.getHandle(workflowId).describe()).status.name === 'COMPLETED',
        'its end',
      ),
    )
    const [delivery] = await deliveriesOf(hook)
    expectError(await redeliver(hook, delivery), 409, /disabled/)
    answerAt(hook, answerStatus(200))
    await call(service.url, 'PATCH', hook.path, { enabled: true })
    expect((await redeliver(hook, delivery)).status).toBe(200)
    await untilStatus(hook, 'delivered')
    await remove(hook)
  })

  it('goes to a new address at once', async () => {
    const hook = await addHook()
    answerAt(hook, answerStatus(500, { 'Retry-After': '3600' }))
    await post(service.url, await createScriptedSession(service.url, DONE))
    await untilFailed(hook)
    const place = `${hook.place}-moved`
    await call(service.url, 'PATCH', hook.path, { url: receiver.url + place })
    await untilReceived({ ...hook, place }, 1)
    await remove(hook)
  })

  it.each<[what: string, status: number, ask: (hook: Hook) => Promise<unknown>]>([
    ['its webhook has got another address', 500, (hook) => move(hook)],
    ['its webhook, which is gone at the former address, has got another', 410, (hook) => move(hook)],
    ['somebody has asked for it', 500, async (hook) => redeliver(hook, (await deliveriesOf(hook))[0])],
  ])('that fails is attempted again at once if meanwhile %s', async (_, status, ask) => {
    const hook = await addHook()
    const held = Promise.withResolvers<ServerResponse>()
    answerAt(hook, held.resolve)
    await post(service.url, await createScriptedSession(service.url, DONE))
    const response = await held.promise
    answerAt(hook, answerStatus(204))
    expect(await ask(hook)).toMatchObject({ status: 200 })
    answerStatus(status, { 'Retry-After': '3600' })(response)
    expect(await untilStatus(hook, 'delivered')).toMatchObject([{ attempts: 2, http_status: 204 }])
    expect((await call(service.url, 'GET', hook.path)).body.enabled).toBe(true)
    await remove(hook)
  })

  const move = (hook: Hook) => call(service.url, 'PATCH', hook.path, { url: `${receiver.url}${hook.place}?moved` })

  it('fails with the end of its time, and its webhook is deleted with all deliveries', async () => {
    const hook = await addHook()
    answerAt(hook, answerStatus(500))
    await post(service.url, await createScriptedSession(service.url, DONE))
    await untilFailed(hook)
    const { db } = service.platform.deps
    const [delivery] = await deliveriesOf(hook)
    const where = { id: toUuid(delivery.id) }
    await db.webhookDelivery.update({ where, data: { begunAt: new Date(Date.now() - 4 * 86_400_000) } })
    await redeliver(hook, delivery)
    const [failed] = await untilStatus(hook, 'failed')
    expect(failed).toMatchObject({ attempts: 2, next_attempt_at: null })
    await remove(hook)
    const id = toUuid(hook.id)
    const retain = async () => {
      await deleteExpired(service.platform.deps, new AbortController().signal)
      return (await db.webhook.count({ where: { id } })) === 0
    }
    await waitFor(retain, 'the webhook to be removed')
    expect(await db.webhookDelivery.count({ where: { webhookId: id } })).toBe(0)
  })

  it('leaves out arguments of calls that are too large', async () => {
    const hook = await addHook()
    const tool_calls = callsOf('ask', 'ask').map((one, index) => ({
      ...one,
      id: `call-${index}`,
      arguments: { text: index === 0 ? 'x'.repeat(300_000) : 'short' },
    }))
    const id = await createScriptedSession(service.url, [{ tool_calls }], { tools: [clientTool('ask')] })
    await postAndAsk(service.url, id)
    const [{ event, body } = { event: undefined, body: '' }] = await untilReceived(hook, 1)
    expect(event.data.turn.pending_tool_calls).toMatchObject([
      { id: 'call-0', arguments: {}, arguments_omitted: true },
      { id: 'call-1', arguments: { text: 'short' } },
    ])
    expect(body.length).toBeLessThan(10_000)
    await remove(hook)
  })

  it('tells of an execution that has failed', async () => {
    const hook = await addHook({ events: ['execution.failed'] })
    const target = { type: 'activity', name: 'http_request', input: { url: 'http://127.0.0.1:1/' } }
    const schedule = { name: newUuid(), cron_expression: '0 0 1 1 *', target }
    const { id } = (await call(service.url, 'POST', '/v1/durable/schedules', schedule)).body
    const { execution_id } = (await call(service.url, 'POST', `/v1/durable/schedules/${id}/trigger`)).body
    const [one] = await untilReceived(hook, 1)
    const read = (await call(service.url, 'GET', `/v1/durable/executions/${execution_id}`)).body
    const { schedule_id, error, scheduled_at, completed_at, http_status } = read
    expect(one?.event).toMatchObject({ type: 'execution.failed', data: { agent_id: null, session_id: null } })
    expect(one?.event.data.execution).toEqual({
      ...{ id: execution_id, schedule_id, error, scheduled_at, completed_at, http_status },
    })
    await remove(hook)
  })
})
