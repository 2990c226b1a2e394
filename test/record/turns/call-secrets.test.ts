import type { Deps } from '../../../domain/deps.ts'
import { cancelTurns } from '../../../domain/turns/control/cancel.ts'
import { reason } from '../../../domain/turns/run/reason.ts'
import { failTool, runTool } from '../../../domain/turns/run/tool.ts'
import type { TurnPlace } from '../../../domain/turns/turn-place.ts'
import { deleteSession } from '../../../domain/upkeep/session-deletion/delete-session.ts'
import { reencrypt } from '../../../platform/secrets/reencrypt.ts'
import { createSecrets } from '../../../platform/secrets/secrets.ts'
import type { PrismaClient } from '../../../prisma/generated/client.ts'
import { ANYBODY, withWorkflows } from '../../support/by-hand.ts'
import { call, createSession, type Json, listEvents, textMessage, waitFor } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { type FakeOpenai, type FakeOpenaiAnswer, startFakeOpenai } from '../../support/providers/chat-completions.ts'
import { expectSoundRecord } from '../../support/record.ts'
import { startService, type TestService } from '../../support/service.ts'
import { keyNamed, keyText } from '../../support/stored-secrets.ts'
import { createVault } from '../../support/vault.ts'

const VALUE = 'text-of-a-test-value'
const GIVEN = { name: 'pin', value: VALUE }
const MASKED = { name: 'pin', value: '[secret]' }

const vault = createVault()
let service: TestService
let fake: FakeOpenai
let modelId: string
let deps: Deps
/** What the model answers, in this order. */
const answers: FakeOpenaiAnswer[] = []
beforeAll(async () => {
  service = await startService({
    worker: false,
    environment: { ALLOW_PRIVATE_NETWORK: 'true', SECRETS_ENCRYPTION_KEY: keyText('ours') },
    capabilities: [vault.capability],
  })
  deps = withWorkflows(service.platform.deps, {
    startTurn: async () => {},
    resumeTurn: async () => {},
    cancelTurn: async () => {},
    readTurnState: async () => 'running',
  })
  fake = await startFakeOpenai(() => answers.shift() ?? { text: ['done'] })
  const provider = { name: 'Fake', provider_type: 'openai_completions', base_url: fake.baseUrl, api_key: 'sk-x' }
  const { id } = (await call(service.url, 'POST', '/v1/llm-providers', provider)).body
  const model = { model_id: 'a-model', display_name: 'A model' }
  modelId = (await call(service.url, 'POST', `/v1/llm-providers/${id}/models`, model)).body.id
})
beforeEach(() => {
  vault.runs.length = 0
  fake.requests.length = 0
})
afterAll(async () => {
  await fake.close()
  await service.stop()
})

const never = new AbortController().signal
const ask = (turn: TurnPlace, iteration: number, own = deps, fence = 1) =>
  reason(own, turn, iteration, { fence, signal: never })
const run = (turn: TurnPlace, fence = 1, own = deps, signal = never) => runTool(own, turn, 1, 0, { fence, signal })

/** Creates a turn whose model has called a tool of the vault, or more of them, that have not run yet. */
async function createCall(...names: string[]): Promise<{ id: string; turn: TurnPlace }> {
  const toolCalls = names.map((name) => ({ id: name, name, arguments: JSON.stringify(GIVEN) }))
  answers.push({ toolCalls })
  const id = await createSession(service.url, { default_model_id: modelId, capabilities: [{ ref: 'vault' }] })
  const turn = await say(id)
  expect(await ask(turn, 1)).toMatchObject({ outcome: 'act' })
  return { id, turn }
}

async function say(id: string): Promise<TurnPlace> {
  const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  return { organizationId: ANYBODY.organizationId, sessionId: toUuid(id), turnId: toUuid(body.id) }
}

const secretsOf = ({ sessionId }: TurnPlace) =>
  deps.db.callSecret.findMany({ where: { sessionId }, orderBy: [{ step: 'asc' }, { kind: 'asc' }] })

/** Returns the results in the record, after checking that it is sound and has no secret. */
async function results(id: string): Promise<Json[]> {
  const events = await listEvents(service.url, id)
  expectSoundRecord(events)
  expect(JSON.stringify(events)).not.toContain(VALUE)
  return events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data)
}

/** Returns the messages of the latest request to the model. */
const asked = (): Json[] => (fake.requests.at(-1)?.body.messages ?? []) as Json[]
const askedCall = () => JSON.parse(asked().find(({ tool_calls }) => tool_calls)?.tool_calls[0].function.arguments)

/** Counts the statements that a step makes. */
async function countStatements(work: (counting: Deps) => Promise<unknown>): Promise<number> {
  let count = 0
  const db = new Proxy(deps.db, {
    get: (target, name) => {
      const own = Reflect.get(target, name)
      if (name !== '$queryRaw') return own
      return (...args: unknown[]) => {
        count++
        return own.apply(target, args)
      }
    },
  })
  await work({ ...deps, db })
  return count
}

describe('the secrets of a call', () => {
  it('reach the next attempt at its tool, when the process of the first dies', async () => {
    const { id, turn } = await createCall('block')
    const died = new AbortController()
    const first = run(turn, 1, deps, died.signal)
    await waitFor(async () => vault.runs.length > 0, 'the tool to run')
    died.abort(new Error('the process dies'))
    await expect(first).rejects.toThrow('the process dies')
    const second = run(turn, 2)
    await waitFor(async () => vault.runs.length > 1, 'the tool to run again')
    await cancelTurns(deps, ANYBODY, toUuid(id))
    expect(await second).toEqual({ outcome: 'ended' })
    expect(vault.runs.map(({ args }) => args)).toEqual([GIVEN, GIVEN])
    expect(await results(id)).toMatchObject([{ status: 'cancelled', result: null }])
    expect(await secretsOf(turn)).toMatchObject([{ step: 'tool:1:block', kind: 'arguments' }])
  })

  it('are read before the call is claimed: a tool that may not run again is run after an outage', async () => {
    const { id, turn } = await createCall('keep_once')
    const away = Object.assign(new Error('connection lost'), { code: 'ECONNRESET' })
    const db = deps.db.$extends({
      query: {
        $queryRaw: ({ args, query }) => {
          if (args.sql.includes('call_secrets')) throw away
          return query(args)
        },
      },
    })
    await expect(run(turn, 1, { ...deps, db: db as unknown as PrismaClient })).rejects.toBe(away)
    await run(turn, 2)
    expect(vault.runs.map(({ args }) => args)).toEqual([GIVEN])
    expect(await results(id)).toMatchObject([{ status: 'success' }])
  })

  it('are recorded with the event, or not at all, and once', async () => {
    const { id, turn } = await createCall('keep')
    expect(await secretsOf(turn)).toMatchObject([{ step: 'tool:1:keep', kind: 'arguments' }])
    await deps.db.turnStep.create({ data: { turnId: turn.turnId, step: 'tool:1:keep', fence: 5, claims: 1 } })
    await expect(run(turn, 1)).rejects.toThrow('newer attempt')
    expect(await secretsOf(turn)).toHaveLength(1)
    await run(turn, 6)
    const stored = await secretsOf(turn)
    expect(stored).toMatchObject([{ kind: 'arguments' }, { step: 'tool:1:keep', kind: 'result' }])
    // Neither attempt writes what is there already.
    await Promise.all([run(turn, 7), failTool(deps, turn, 1, 0), ask(turn, 1, deps, 8)])
    expect(await secretsOf(turn)).toEqual(stored)
    expect(await results(id)).toHaveLength(1)
  })

  it('are gone with their session', async () => {
    const { id, turn } = await createCall('keep')
    await run(turn)
    await deleteSession(deps, ANYBODY, toUuid(id))
    await waitFor(async () => (await secretsOf(turn)).length === 0, 'the secrets to go')
  })

  it('are recorded for a call that is refused or never runs, because the model made it', async () => {
    const few = { ...deps, limits: { ...deps.limits, maxTurnIterations: 1 } }
    answers.push({ toolCalls: [{ id: 'keep', name: 'keep', arguments: JSON.stringify(GIVEN) }] })
    const id = await createSession(service.url, { default_model_id: modelId, capabilities: [{ ref: 'vault' }] })
    const turn = await say(id)
    expect(await ask(turn, 1, few)).toEqual({ outcome: 'failed', code: 'max_iterations' })
    expect(await secretsOf(turn)).toHaveLength(1)
    await cancelTurns(deps, ANYBODY, toUuid(id))
    const next = await say(id)
    expect(await ask(next, 1)).toMatchObject({ outcome: 'answered' })
    expect(askedCall()).toEqual(GIVEN)
    await results(id)
  })

  it('cost one statement where they are, and none elsewhere', async () => {
    const counts: Record<string, number[]> = {}
    for (const capability of ['vault', 'test_math']) {
      const [name, args] = capability === 'vault' ? ['keep', GIVEN] : ['add', { a: 1, b: 2 }]
      answers.push({ toolCalls: [{ id: 'one', name, arguments: JSON.stringify(args) }] })
      const id = await createSession(service.url, { default_model_id: modelId, capabilities: [{ ref: capability }] })
      const turn = await say(id)
      counts[capability] = [
        await countStatements((own) => ask(turn, 1, own)),
        await countStatements((own) => run(turn, 1, own)),
        await countStatements((own) => ask(turn, 2, own)),
      ]
      expect((await results(id))[0]).toMatchObject({ success: true })
    }
    const [asking = 0, running = 0, answering = 0] = counts.test_math ?? []
    process.stdout.write(`statements of a call without secrets: ${asking}, ${running}, ${answering}\n`)
    expect(counts.vault).toEqual([asking, running + 1, answering + 1])
  })
})

describe('secrets that cannot be read', () => {
  const others = () => ({ ...deps, secrets: createSecrets({ current: keyNamed('another'), previous: [] }) })

  it.each<[string, (turn: TurnPlace) => Promise<Deps>]>([
    ['their key is missing', async () => ({ ...others(), secrets: withKeyOfProvider() })],
    ['they are damaged', async (turn) => damage(turn)],
    [
      'they are gone',
      async ({ sessionId }) => {
        await deps.db.callSecret.deleteMany({ where: { sessionId } })
        return deps
      },
    ],
  ])('are [secret] for the model, and keep a tool from running, when %s', async (_name, spoil) => {
    const { id, turn } = await createCall('keep')
    const own = await spoil(turn)
    expect(await run(turn, 1, own)).toEqual({ outcome: 'done' })
    expect(vault.runs).toEqual([])
    expect(await results(id)).toMatchObject([
      { status: 'error', error: expect.stringMatching(/^The call was not run/) },
    ])
    expect(await ask(turn, 2, own)).toMatchObject({ outcome: 'answered' })
    expect(askedCall()).toEqual(MASKED)
  })

  /** Decrypts providers' keys as ever, and no other secret. */
  const withKeyOfProvider = (): Deps['secrets'] => ({
    ...deps.secrets,
    decrypt: (bytes, place) => (place.startsWith('llm_providers/') ? deps : others()).secrets.decrypt(bytes, place),
  })
  async function damage({ sessionId }: TurnPlace): Promise<Deps> {
    await deps.db.$executeRaw`
      UPDATE call_secrets SET value = set_byte(value, length(value) - 1, 255 - get_byte(value, length(value) - 1))
      WHERE session_id = ${sessionId}::uuid`
    return deps
  }

  it('are readable under a new key after they were re-encrypted', async () => {
    const { id, turn } = await createCall('keep', 'refuse')
    await run(turn)
    await reencrypt(deps.db, { current: keyNamed('new'), previous: [keyNamed('ours')] }, 1)
    const own = { ...deps, secrets: createSecrets({ current: keyNamed('new'), previous: [] }) }
    expect(await runTool(own, turn, 1, 1, { fence: 1, signal: never })).toEqual({ outcome: 'done' })
    expect(vault.runs.map(({ args }) => args)).toEqual([GIVEN, GIVEN])
    expect(await ask(turn, 2, own)).toMatchObject({ outcome: 'answered' })
    expect(askedCall()).toEqual(GIVEN)
    await results(id)
    await reencrypt(deps.db, { current: keyNamed('ours'), previous: [keyNamed('new')] })
  })
})
