import { z } from 'zod'
import { RequestError } from '../../../api/http/errors.ts'
import { type Handle, reply } from '../../../api/http/handle.ts'
import { answerList, linesOf } from '../../../api/http/json-list.ts'
import { createSseStreams, type SseEvent } from '../../../api/http/sse.ts'
import { Event } from '../../../contract/events.ts'
import { conflict, forbidden, invalid, tooMany } from '../../../domain/kit/errors.ts'
import { createLogCheck } from '../../support/log-check.ts'
import { defineEndpoint, plant } from '../../support/planted.ts'

type Log = Parameters<Parameters<typeof plant>[0]>[1]

const base = {
  operationId: 'planted',
  method: 'GET',
  path: '/v1/things',
  tag: 'things',
  access: 'public',
  summary: 'Planted',
} as const
const Thing = z.object({ id: z.int(), name: z.string() })
const one = defineEndpoint({ ...base, responses: { 200: Thing, 204: null }, errors: [422] })
const many = defineEndpoint({ ...base, responses: { 200: z.object({ data: z.array(Thing), total: z.int() }) } })
const text = defineEndpoint({ ...base, responses: { 200: { contentType: 'text/markdown', description: 'A text' } } })
const ticks = defineEndpoint({ ...base, responses: {}, streams: 'Ticks', streamed: z.object({ tick: z.int() }) })
const created = defineEndpoint({
  ...base,
  operationId: 'planted',
  method: 'POST',
  creates: true,
  responses: { 201: Thing },
})

const WRONG = { id: 'x', name: 1 } as unknown as z.infer<typeof Thing>
const RIGHT = { id: 1, name: 'a' }

/**
 * Requests a planted endpoint. Returns status, text and log of the answer. The text of an answer that breaks off is
 * 'broken off'.
 */
async function ask(register: (handle: Handle, log: Log) => void, method = 'GET') {
  const app = await plant(register)
  try {
    const answer = await fetch(`${app.url}/v1/things`, { method }).catch(() => undefined)
    const body = await answer?.text().catch(() => undefined)
    return { status: answer?.status, body: body ?? 'broken off', logged: app.logged.join('') }
  } finally {
    await app.close()
  }
}

async function* pagesOf(...pages: unknown[][]) {
  yield* pages
}

async function* stream(...batches: SseEvent[][]): AsyncGenerator<SseEvent[], string> {
  yield* batches
  return 'aborted'
}

const PACE = { cycleMs: 60_000, monitoringCycleMs: 60_000, heartbeatMs: 60_000, maxStreamsPerOrganization: 10 }

function streaming(handle: Handle, log: Log, ...lines: string[]) {
  const streams = createSseStreams(PACE, { log, findEnded: async () => new Set(), ownerOf: async (id) => id })
  handle(ticks, async ({ ctx }) => {
    const events = stream(...lines.map((line) => [{ type: 'tick', line }]))
    await streams.serve(ctx, {
      organizationId: 'o',
      credential: undefined,
      kind: 'monitoring',
      sessionId: undefined,
      open: async () => events,
    })
    return undefined
  })
}

const events = defineEndpoint({ ...base, responses: { 200: z.object({ data: z.array(Event) }) } })
const TURN = `turn_${'0'.repeat(32)}`
const eventOf = (data: object) => ({
  id: `event_${'0'.repeat(32)}`,
  type: 'turn.failed',
  ts: new Date(0).toISOString(),
  session_id: `session_${'0'.repeat(32)}`,
  sequence: 1,
  context: {},
  data,
})

describe('an event in tests', () => {
  it.each([
    ['its own type', { turn_id: TURN, error: 'The model could not answer.' }, false],
    ['another type', { turn_id: TURN, reason: 'cancelled' }, true],
  ])('is checked with the data of %s', async (_, data, isRefused) => {
    const { body, logged } = await ask((handle, log) =>
      handle(events, ({ ctx }) => answerList(ctx, log, linesOf(pagesOf([eventOf(data)])))),
    )
    expect(logged.includes('an item of the list is not what the contract says')).toBe(isRefused)
    expect(body.includes('"turn.failed"')).toBe(!isRefused)
  })
})

describe('an answer in tests', () => {
  it.each([
    ['a body', 200, (handle: Handle) => handle(one, async () => reply(200, RIGHT))],
    ['no body', 204, (handle: Handle) => handle(one, async () => reply(204, undefined))],
    [
      'an error that its endpoint declares',
      422,
      (handle: Handle) => handle(one, () => failWith(new RequestError(422, 'No'))),
    ],
    ['an error that its declaration implies', 400, (handle: Handle) => handle(one, () => failWith(invalid('No')))],
    ['409 where something is created', 409, (handle: Handle) => handle(created, () => failWith(conflict('No')))],
    [
      'the service being away',
      503,
      (handle: Handle) =>
        handle(one, () => failWith(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))),
    ],
    [
      'a text',
      200,
      (handle: Handle) =>
        handle(text, async () => reply(200, '# A', { 'Content-Type': 'text/markdown; charset=utf-8' })),
    ],
  ])('passes when it is what the contract says: %s', async (_, status, register) => {
    const answer = await ask(register, status === 409 ? 'POST' : 'GET')
    expect(answer.status).toBe(status)
    expect(answer.body).not.toMatch(/contract|declare/)
  })

  it.each([
    [
      'a wrong body',
      /GET \/v1\/things answered 200: the body is not what/,
      (handle: Handle) => handle(one, async () => reply(200, WRONG)),
    ],
    ['a body too many', /declares no body/, (handle: Handle) => handle(one, async () => reply(204, RIGHT as never))],
    [
      'a status',
      /answered 201: .* declare this status/,
      (handle: Handle) => handle(one, async () => reply(201 as 200, RIGHT)),
    ],
    [
      'a text of another type',
      /not a text of type text\/markdown/,
      (handle: Handle) => handle(text, async () => reply(200, '# A')),
    ],
    [
      'a conflict',
      /answered 409: .*add it to its errors; it said "Taken"/,
      (handle: Handle) => handle(one, () => failWith(conflict('Taken'))),
    ],
    ['a refusal', /answered 403/, (handle: Handle) => handle(one, () => failWith(forbidden('No')))],
    ['a limit', /answered 429/, (handle: Handle) => handle(one, () => failWith(tooMany('Later', 1)))],
    ['an unknown type', /answered 415/, (handle: Handle) => handle(one, () => failWith(new RequestError(415, 'No')))],
    [
      'an error that the handler writes',
      /answered 409/,
      (handle: Handle) => handle(one, async ({ ctx }) => write(ctx, 409, { error: 'Taken' })),
    ],
    [
      'a body that the handler writes',
      /the body is not what/,
      (handle: Handle) => handle(one, async ({ ctx }) => write(ctx, 200, WRONG)),
    ],
    [
      'the first item of a list',
      /an item of the list/,
      (handle: Handle, log: Log) => list(handle, log, { total: 1 }, [WRONG]),
    ],
    [
      'the fields beside a list',
      /the list without its items/,
      (handle: Handle, log: Log) => list(handle, log, {}, [RIGHT]),
    ],
  ] as [string, RegExp, (handle: Handle, log: Log) => void][])(
    'fails, loudly, when it is not: %s',
    async (_, problem, register) => {
      const { status, body, logged } = await ask(register)
      expect(status).toBe(500)
      expect(JSON.parse(body).error).toMatch(problem)
      expect(() => checkLog(logged)).toThrow('broke the contract')
    },
  )

  it('fails when something is created regardless of the Idempotency-Key', async () => {
    const { status, body } = await ask((handle) => handle(created, async () => reply(201, RIGHT)), 'POST')
    expect([status, body]).toEqual([500, expect.stringContaining('Idempotency-Key')])
    const guarded = (handle: Handle) => handle(created, async ({ once }) => reply(201, await once(async () => RIGHT)))
    expect((await ask(guarded, 'POST')).status).toBe(201)
  })

  it('breaks off at a later item of a list', async () => {
    const good = await ask((handle, log) => list(handle, log, { total: 2 }, [RIGHT], [RIGHT]))
    expect(JSON.parse(good.body)).toEqual({ data: [RIGHT, RIGHT], total: 2 })
    expect(() => checkLog(good.logged)).not.toThrow()
    const { body, logged } = await ask((handle, log) => list(handle, log, { total: 2 }, [RIGHT], [WRONG]))
    expect(body).toBe('broken off')
    expect(() => checkLog(logged)).toThrow(/broke the contract: .*an item of the list/)
  })

  it('breaks off at an item of a stream', async () => {
    const good = await ask((handle, log) => streaming(handle, log, '{"tick":1}', '{"tick":2}'))
    expect(good.body).toContain('data: {"tick":2}')
    const { body, logged } = await ask((handle, log) => streaming(handle, log, '{"tick":1}', '{"tick":"x"}'))
    expect(body).toBe('broken off')
    expect(() => checkLog(logged)).toThrow(/broke the contract: .*an event of the stream/)
  })
})

const failWith = (error: Error): Promise<never> => Promise.reject(error)

async function write(ctx: { status: number; body: unknown }, status: number, body: unknown): Promise<undefined> {
  ctx.status = status
  ctx.body = body
}

const list = (handle: Handle, log: Log, more: object, ...pages: unknown[][]) =>
  handle(many, async ({ ctx }) => answerList(ctx, log, linesOf(pagesOf(...pages)), { more }))

function checkLog(logged: string): void {
  const check = createLogCheck()
  for (const line of logged.split('\n')) check.write(line)
  check.expectNoSecrets()
}
