import type { Deps } from '../../../domain/deps.ts'
import { callStep } from '../../../domain/events/log/steps.ts'
import { placeOf } from '../../../domain/kit/secrets.ts'
import { setStored } from '../../../domain/session-data/storage/change.ts'
import { readSecret } from '../../../domain/session-data/storage/read.ts'
import { SESSION_SECRETS } from '../../../domain/session-data/storage/secret-column.ts'
import { cancelTurns } from '../../../domain/turns/control/cancel.ts'
import { reason } from '../../../domain/turns/run/reason.ts'
import { failTool, runTool } from '../../../domain/turns/run/tool.ts'
import { createSecrets } from '../../../platform/secrets/secrets.ts'
import type { PrismaClient } from '../../../prisma/generated/client.ts'
import { ANYBODY, withWorkflows } from '../../support/by-hand.ts'
import { call, createScriptedSession, type Json, listEvents, textMessage, waitFor } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { expectSoundRecord } from '../../support/record.ts'
import { startService, type TestService } from '../../support/service.ts'
import { keyNamed, keyText } from '../../support/stored-secrets.ts'

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false, environment: { SECRETS_ENCRYPTION_KEY: keyText('ours') } })
  const nothing = async () => {}
  deps = withWorkflows(service.platform.deps, { startTurn: nothing, resumeTurn: nothing, cancelTurn: nothing })
})
afterAll(() => service.stop())

type ScriptedCall = [name: 'kv_store' | 'secret_store', args: object]
const attempt = (fence: number, signal = new AbortController().signal) => ({ fence, signal })
const set = (key: string, value: string): ScriptedCall => ['kv_store', { operation: 'set', key, value }]
const setSecret = (name: string, value: string): ScriptedCall => ['secret_store', { operation: 'set', name, value }]

/** Creates a turn whose model has made these calls in one answer. None of them has run yet. */
async function createCalls(...calls: ScriptedCall[]) {
  const tool_calls = calls.map(([name, args], at) => ({ id: `call-${at}`, name, arguments: args }))
  const capabilities = [{ ref: 'session_storage' }]
  const id = await createScriptedSession(service.url, [{ tool_calls }, { text: 'done' }], { capabilities })
  const message = (await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))).body
  const turn = { organizationId: ANYBODY.organizationId, sessionId: toUuid(id), turnId: toUuid(message.id) }
  expect(await reason(deps, turn, 1, attempt(1))).toMatchObject({ outcome: 'act' })
  const run = (position: number, its = deps, as = attempt(1)) => runTool(its, turn, 1, position, as)
  /** Runs the calls one after the other. Returns their results. */
  const runAll = async (its = deps) => {
    for (const position of calls.keys()) await run(position, its)
    return resultsOf(id)
  }
  return { id, turn, run, runAll }
}

/** Returns the results of the calls, in their order: values or errors. */
async function resultsOf(id: string): Promise<Json[]> {
  const events = await listEvents(service.url, id)
  expectSoundRecord(events)
  const completed = events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data)
  completed.sort((a, b) => Number(a.tool_call_id.slice(5)) - Number(b.tool_call_id.slice(5)))
  return completed.map(({ result, error }) => (result ? JSON.parse(result[0].text) : error))
}

const list = async (id: string, of: 'keys' | 'secrets'): Promise<Json[]> =>
  (await call(service.url, 'GET', `/v1/sessions/${id}/storage/${of}`)).body.data
const valuesOf = async (id: string) => (await list(id, 'keys')).map(({ key, value }) => [key, value])
const namesOf = async (id: string) => (await list(id, 'secrets')).map(({ name }) => name)

const withQuotas = (storage: Partial<Deps['quotas']['storage']>): Deps => ({
  ...deps,
  quotas: { ...deps.quotas, storage: { ...deps.quotas.storage, ...storage } },
})

/** Runs `between` at the change of an attempt: before it reaches the database, or after it has been committed. */
function withChange(when: 'before' | 'after', between: () => Promise<void>): Deps {
  const db = deps.db.$extends({
    query: {
      $queryRaw: async ({ args, query }) => {
        const isChange = args.sql.includes('change_session_storage')
        if (isChange && when === 'before') await between()
        const rows = await query(args)
        if (isChange && when === 'after') await between()
        return rows
      },
    },
  })
  return { ...deps, db: db as unknown as PrismaClient }
}

/** Counts the statements that wait for a lock. */
async function countWaiting(): Promise<number> {
  const [row] = await deps.db.$queryRaw<{ count: number }[]>`
    SELECT count(*)::integer AS count FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`
  return row?.count ?? 0
}

const TOO_MANY = /^A session has at most 3 (value|secret)s; delete some first$/
const TOO_LARGE = /^The values and secrets of a session have at most 100 bytes together; delete some first/

describe('the quotas of a session', () => {
  it.each([
    ['values', set],
    ['secrets', setSecret],
  ])('are kept by %s, however many are stored at once', async (_, setOne) => {
    const { id, run } = await createCalls(...[0, 1, 2, 3, 4].map((n) => setOne(`${n}`, 'x')))
    let running: Promise<unknown> = Promise.resolve()
    await deps.db.$transaction(
      async (tx) => {
        // A call that does not wait for the others would have counted by now, and wait to insert.
        await tx.$executeRaw`LOCK TABLE session_values, session_secrets IN SHARE MODE`
        running = Promise.all([0, 1, 2, 3, 4].map((n) => run(n, withQuotas({ maxCount: 3 }))))
        await waitFor(async () => (await countWaiting()) === 5, 'all calls to wait')
      },
      { timeout: 30_000 },
    )
    await running
    const results = await resultsOf(id)
    expect(results.filter((result) => typeof result === 'object')).toHaveLength(3)
    const errors = results.filter((result) => typeof result === 'string')
    expect(errors).toEqual(Array(2).fill(expect.stringMatching(TOO_MANY)))
    expect([...(await list(id, 'keys')), ...(await list(id, 'secrets'))]).toHaveLength(3)
  })

  it('are 1,000 of each', async () => {
    const calls = [set('one-more', 'x'), set('0500', 'x'), setSecret('one', 'x')]
    const { turn, id, runAll } = await createCalls(...calls)
    await deps.db.$executeRaw`
      INSERT INTO session_values (session_id, key, value, created_at, updated_at)
      SELECT ${turn.sessionId}::uuid, to_char(n, 'FM0000'), 'v', now(), now() FROM generate_series(1, 1000) AS n`
    const [tooMany, ...others] = await runAll()
    expect(tooMany).toBe('A session has at most 1000 values; delete some first')
    expect(others).toMatchObject([{ replaced: true }, { replaced: false }])
    expect(await list(id, 'keys')).toHaveLength(1000)
  })

  it('count bytes of UTF-8 of both together, and never refuse what takes no more than before', async () => {
    const remove: ScriptedCall = ['kv_store', { operation: 'delete', key: 'b' }]
    const { id, runAll } = await createCalls(
      ...[set('a', 'é'.repeat(30)), setSecret('s', 'xxx'), set('b', 'x'), set('a', 'x'.repeat(61))],
      // Encryption takes 37 bytes, so 60 + 3 + 37 is all there is.
      ...[set('a', '😀'.repeat(15)), set('a', 'x'), set('b', 'x'.repeat(59)), setSecret('s', 'xxxx'), remove],
      setSecret('s', 'xxxx'),
    )
    expect(await runAll(withQuotas({ maxTotalBytes: 100 }))).toEqual([
      { key: 'a', size_bytes: 60, replaced: false },
      { name: 's', replaced: false },
      expect.stringMatching(TOO_LARGE),
      expect.stringMatching(TOO_LARGE),
      { key: 'a', size_bytes: 60, replaced: true },
      { key: 'a', size_bytes: 1, replaced: true },
      { key: 'b', size_bytes: 59, replaced: false },
      expect.stringMatching(TOO_LARGE),
      { key: 'b', deleted: true },
      { name: 's', replaced: true },
    ])
    expect(await valuesOf(id)).toEqual([['a', 'x']])
    // Under a lowered quota, a value may shrink but not grow.
    const lowered = await createCalls(set('a', 'xxx'), set('a', 'yyy'), set('a', 'y'), set('a', 'yy'))
    await lowered.run(0)
    await lowered.runAll(withQuotas({ maxCount: 0, maxTotalBytes: 0 }))
    expect(await valuesOf(lowered.id)).toEqual([['a', 'y']])
  })

  it.each([
    ['value', 1024 ** 2],
    ['secret', 64 * 1024],
  ] as const)('let a %s have %i bytes, and no more', async (kind, most) => {
    const { id, turn, run } = await createCalls(set('a', 'x'))
    const writer = { turnId: turn.turnId, step: callStep(1, 'call-0'), fence: 1 }
    const scope = { ...turn, writer, signal: new AbortController().signal }
    // A script has no room for it. The step has been claimed by then.
    const storeLargest = withChange('before', async () => {
      const tooLarge = () => setStored(deps, scope, kind, 'b', `${'x'.repeat(most - 1)}é`)
      await expect(tooLarge()).rejects.toThrow(`value: must be at most ${most} bytes of UTF-8 for a ${kind}`)
      expect(await setStored(deps, scope, kind, 'b', 'x'.repeat(most))).toEqual({ existed: false })
    })
    await run(0, storeLargest)
    expect(kind === 'value' ? (await valuesOf(id))[0] : await namesOf(id)).toEqual(
      kind === 'value' ? ['b', 'x'.repeat(most)] : ['b'],
    )
  })
})

describe('a call whose process died after its change', () => {
  it.each<[ScriptedCall, object, unknown]>([
    [set('a', 'new'), { key: 'a', size_bytes: 3, replaced: false }, 'new'],
    [set('old', 'new'), { key: 'old', size_bytes: 3, replaced: true }, 'new'],
    [['kv_store', { operation: 'delete', key: 'old' }], { key: 'old', deleted: true }, undefined],
    [['kv_store', { operation: 'delete', key: 'none' }], { key: 'none', deleted: false }, undefined],
    [setSecret('s', 'new'), { name: 's', replaced: false }, undefined],
  ])('%j has changed once, and answers what the first attempt would have', async (one, value, stored) => {
    const { id, run } = await createCalls(one, set('old', 'old'))
    await run(1)
    const died = new AbortController()
    const dying = withChange('after', async () => {
      died.abort(new Error('the process dies'))
      throw died.signal.reason
    })
    await expect(run(0, dying, attempt(1, died.signal))).rejects.toThrow('the process dies')
    const before = await Promise.all([list(id, 'keys'), list(id, 'secrets')])
    // It may not have been the last: what has changed since stays, as its time shows.
    expect(await run(0, deps, attempt(2))).toEqual({ outcome: 'done' })
    expect(await Promise.all([list(id, 'keys'), list(id, 'secrets')])).toEqual(before)
    expect((await resultsOf(id))[0]).toEqual(value)
    const [, args] = one
    if ('key' in args) expect((await valuesOf(id)).find(([key]) => key === args.key)?.[1]).toBe(stored)
    else expect(await namesOf(id)).toEqual(['s'])
  })
})

describe('an attempt that may not write any more', () => {
  it('changes nothing when a newer one has begun, which does', async () => {
    const { id, run } = await createCalls(set('a', 'x'))
    const newer = () => run(0, deps, attempt(2)).then(() => {})
    await expect(run(0, withChange('before', newer))).rejects.toThrow('newer attempt')
    expect(await resultsOf(id)).toEqual([{ key: 'a', size_bytes: 1, replaced: false }])
  })

  it('changes nothing when its call has its result', async () => {
    const { id, run, turn } = await createCalls(set('a', 'x'))
    const late = withChange('before', () => failTool(deps, turn, 1, 0))
    await expect(run(0, late)).rejects.toThrow('newer attempt')
    expect(await valuesOf(id)).toEqual([])
  })

  it('changes nothing when its turn has ended', async () => {
    const { id, run } = await createCalls(setSecret('a', 'x'))
    const cancel = () => cancelTurns(deps, ANYBODY, toUuid(id)).then(() => {})
    expect(await run(0, withChange('before', cancel))).toEqual({ outcome: 'ended' })
    expect(await namesOf(id)).toEqual([])
  })

  it('leaves no row of a session that is deleted at the same time', async () => {
    const countRows = async (sessionId: string) => [
      await deps.db.sessionValue.count({ where: { sessionId } }),
      await deps.db.sessionSecret.count({ where: { sessionId } }),
    ]
    const remove = (id: string) => call(service.url, 'DELETE', `/v1/sessions/${id}`).then(() => {})
    const { id, run, turn } = await createCalls(set('a', 'x'))
    await run(
      0,
      withChange('before', () => remove(id)),
    ).catch(() => {})
    expect(await countRows(turn.sessionId)).toEqual([0, 0])
    for (let round = 0; round < 5; round++) {
      const calls = await createCalls(set('a', 'x'), setSecret('b', 'x'), set('c', 'x'), setSecret('d', 'x'))
      const running = [0, 1, 2, 3].map((n) => calls.run(n).catch(() => {}))
      await Promise.all([...running.slice(round % 3), remove(calls.id), ...running])
      expect(await countRows(calls.turn.sessionId)).toEqual([0, 0])
    }
  })
})

it('a change waits for one of another process', async () => {
  const { id, run, turn } = await createCalls(set('a', 'x'))
  let running: Promise<unknown> = Promise.resolve()
  let tries = 0
  const counting = withChange('before', async () => {
    tries++
  })
  await deps.db.$transaction(
    async (tx) => {
      await tx.$executeRaw`SELECT pg_advisory_xact_lock(1927, hashtext(${turn.sessionId}::uuid::text))::text`
      running = run(0, counting)
      // The first try has given up its lock after a second.
      await waitFor(async () => tries > 1, 'the change to be tried again')
    },
    { timeout: 30_000 },
  )
  await running
  expect(await resultsOf(id)).toEqual([{ key: 'a', size_bytes: 1, replaced: false }])
})

it('a change that waited has a later time than changes that did not', async () => {
  const { id, run, turn } = await createCalls(set('a', 'first'), set('a', 'second'))
  let overtaking: Promise<unknown> | undefined
  const waiting = withChange('before', async () => {
    if (overtaking !== undefined) return
    await new Promise<void>((isLocked) => {
      overtaking = deps.db.$transaction(
        async (tx) => {
          await tx.$queryRaw`
            SELECT step FROM turn_steps WHERE turn_id = ${turn.turnId}::uuid AND step = ${callStep(1, 'call-0')} FOR UPDATE`
          isLocked()
          await waitFor(async () => (await countWaiting()) === 1, 'the first change to wait')
          await run(1)
        },
        { timeout: 30_000 },
      )
    })
  })
  await run(0, waiting)
  await overtaking
  const [{ value, created_at, updated_at }] = await list(id, 'keys')
  expect(value).toBe('first')
  expect(updated_at > created_at).toBe(true)
})

describe('a secret', () => {
  const SECRET = 'text-of-a-test with a slash / and 🗝'
  const get = (name: string): ScriptedCall => ['secret_store', { operation: 'get', name }]

  it('is stored encrypted, for its place', async () => {
    const { turn, runAll } = await createCalls(setSecret('a/b', SECRET), setSecret('c', 'other'))
    await runAll()
    const { organizationId, sessionId } = turn
    expect(await readSecret(deps, turn, 'a/b')).toBe(SECRET)
    expect(await readSecret(deps, { organizationId: turn.turnId, sessionId }, 'a/b')).toBeUndefined()
    const row = { sessionId_name: { sessionId, name: 'a/b' } }
    const { value } = await deps.db.sessionSecret.findUniqueOrThrow({ where: row })
    expect(Buffer.from(value).includes('slash')).toBe(false)
    expect(deps.secrets.decrypt(value, placeOf(SESSION_SECRETS, [sessionId, 'a/b']))).toBe(SECRET)
    await deps.db.sessionSecret.update({ where: { sessionId_name: { sessionId, name: 'c' } }, data: { value } })
    await expect(readSecret(deps, { organizationId, sessionId }, 'c')).rejects.toThrow(/stored, but damaged/)
  })

  it('that cannot be read is still there, and is read with its key, or replaced', async () => {
    const calls = [setSecret('a', SECRET), get('a'), get('a'), setSecret('a', 'new'), get('a')]
    const { id, turn, run } = await createCalls(...calls)
    const logged: unknown[] = []
    const log = Object.assign(Object.create(deps.log), { error: (...line: unknown[]) => void logged.push(line) })
    const rotated = { ...deps, log, secrets: createSecrets({ current: keyNamed('other'), previous: [] }) }
    await run(0)
    await run(1, rotated)
    expect(await namesOf(id)).toEqual(['a'])
    await run(2)
    expect(await readSecret(deps, turn, 'a')).toBe(SECRET)
    // The call itself came under the old key.
    await run(3, { ...rotated, secrets: createSecrets({ current: keyNamed('other'), previous: [keyNamed('ours')] }) })
    await run(4, rotated)
    const results = await resultsOf(id)
    expect(results[1]).toMatch(
      /^The secret is stored, but this server does not have the key to read it; nothing is lost/,
    )
    expect([results[2], results[3], results[4]]).toMatchObject([{ found: true }, { replaced: true }, { found: true }])
    expect(await readSecret(rotated, turn, 'a')).toBe('new')
    expect(logged).toEqual([
      [
        { session: id, err: expect.stringMatching(/SECRETS_ENCRYPTION_KEY_PREVIOUS/) },
        'secret of a session not readable',
      ],
    ])
  })
})

it('text that Postgres cannot store is refused with a sentence', async () => {
  const { turn } = await createCalls(set('a', 'x'))
  const scope = { ...turn, writer: { turnId: turn.turnId, step: '', fence: 1 }, signal: new AbortController().signal }
  for (const text of ['nul \0', 'half \ud800']) {
    await expect(readSecret(deps, turn, text)).rejects.toThrow(/^name: must not have NUL .* encode it/)
    await expect(setStored(deps, scope, 'value', 'a', text)).rejects.toThrow(/^value: must not have NUL .* encode it/)
  }
})
