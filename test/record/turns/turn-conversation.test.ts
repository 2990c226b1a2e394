import { createConversationCache } from '../../../domain/conversation/conversation-cache.ts'
import type { Deps } from '../../../domain/deps.ts'
import { reasonStep } from '../../../domain/events/log/steps.ts'
import { newUuid } from '../../../domain/kit/ids.ts'
import { cancelOwnTurn, cancelTurns } from '../../../domain/turns/control/cancel.ts'
import { reason } from '../../../domain/turns/run/reason.ts'
import { runTool } from '../../../domain/turns/run/tool.ts'
import { loadTurn } from '../../../domain/turns/run/turn-context.ts'
import type { TurnPlace } from '../../../domain/turns/turn-place.ts'
import { deleteSession } from '../../../domain/upkeep/session-deletion/delete-session.ts'
import { ANYBODY, withWorkflows } from '../../support/by-hand.ts'
import { call, createSession, textMessage } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { PIXEL } from '../../support/pictures.ts'
import { type FakeOpenai, type FakeOpenaiAnswer, startFakeOpenai } from '../../support/providers/chat-completions.ts'
import { startService, type TestService } from '../../support/service.ts'
import { keyText } from '../../support/stored-secrets.ts'
import { createVault } from '../../support/vault.ts'

let service: TestService
let fake: FakeOpenai
let modelId: string
/** `here` and `elsewhere` are processes that keep conversations, `forgetful` keeps none. */
let here: Deps
let elsewhere: Deps
let forgetful: Deps
/** What the model answers, in this order. */
const answers: FakeOpenaiAnswer[] = []

/** Makes a value unchangeable to any depth. Conversations are shared by the turns of a session. */
function freeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null)
    for (const inner of Object.values(Object.freeze(value))) freeze(inner)
  return value
}

function withCache(deps: Deps): Deps {
  const cache = createConversationCache()
  return { ...deps, conversations: { ...cache, set: (id, beginning) => cache.set(id, freeze(beginning)) } }
}

beforeAll(async () => {
  const vault = createVault()
  service = await startService({
    worker: false,
    environment: { ALLOW_PRIVATE_NETWORK: 'true', SECRETS_ENCRYPTION_KEY: keyText('ours') },
    capabilities: [vault.capability],
  })
  const deps = withWorkflows(service.platform.deps, { startTurn: async () => {}, cancelTurn: async () => {} })
  here = withCache(deps)
  elsewhere = withCache(deps)
  forgetful = { ...deps, conversations: { get: () => undefined, set: () => {}, delete: () => {} } }
  fake = await startFakeOpenai(() => answers.shift() ?? { text: ['done'] })
  const provider = { name: 'Fake', provider_type: 'openai_completions', base_url: fake.baseUrl, api_key: 'sk-x' }
  const { id } = (await call(service.url, 'POST', '/v1/llm-providers', provider)).body
  const model = { model_id: 'a-model', display_name: 'A model' }
  modelId = (await call(service.url, 'POST', `/v1/llm-providers/${id}/models`, model)).body.id
})
afterAll(async () => {
  await fake.close()
  await service.stop()
})

const attempt = { fence: 1, signal: new AbortController().signal }

const open = () => createSession(service.url, { default_model_id: modelId, capabilities: [{ ref: 'vault' }] })

async function say(id: string, message: object = textMessage('Go')): Promise<TurnPlace> {
  const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, message)
  return { organizationId: ANYBODY.organizationId, sessionId: toUuid(id), turnId: toUuid(body.id) }
}

/** Gives the conversation of a turn as a model would get it: the same with and without what is kept. */
async function expectSame(own: Deps, turn: TurnPlace) {
  const load = async (deps: Deps) => {
    const context = await loadTurn(deps, turn, reasonStep(1))
    return context && { ...context, toolset: undefined, capabilities: undefined, startedAt: undefined }
  }
  const loaded = await load(own)
  expect(loaded?.messages.length).toBeGreaterThan(0)
  expect(loaded).toEqual(await load(forgetful))
  return loaded
}

async function answer(own: Deps, turn: TurnPlace): Promise<void> {
  await expectSame(own, turn)
  const { outcome } = await reason(own, turn, 1, attempt)
  if (outcome !== 'act') return
  await runTool(own, turn, 1, 0, attempt)
  await expectSame(own, turn)
  await reason(own, turn, 2, attempt)
}

const kinds: ((id: string) => Promise<void>)[] = [
  async (id) => answer(here, await say(id)),
  async (id) => {
    const given = JSON.stringify({ name: 'pin', value: 'text-of-a-test-value' })
    answers.push({ toolCalls: [{ id: 'same_id', name: 'keep', arguments: given }] })
    const turn = await say(id)
    await answer(here, turn)
    // As a provider with data of its own has it recorded.
    await here.db.$executeRaw`
      UPDATE events SET data = data || '{"provider_data": {"source": "another", "blocks": []}}'
      WHERE turn_id = ${turn.turnId}::uuid AND type = 'output.message.completed'`
  },
  async (id) => {
    const image = { type: 'image', base64: PIXEL.toString('base64'), media_type: 'image/png' }
    await answer(here, await say(id, { message: { content: [{ type: 'text', text: 'Look' }, image] } }))
  },
  async (id) => {
    answers.push({ toolCalls: [{ id: 'open', name: 'keep', arguments: '{}' }] })
    const turn = await say(id)
    await expectSame(here, turn)
    await reason(here, turn, 1, attempt)
    await cancelTurns(here, ANYBODY, toUuid(id))
  },
  async (id) => answer(elsewhere, await say(id)),
  async (id) => {
    const turns = [await say(id), await say(id, textMessage('Queued')), await say(id, textMessage('Given up'))]
    const [first, second, third] = turns as [TurnPlace, TurnPlace, TurnPlace]
    await expectSame(here, second)
    await answer(here, first)
    await cancelOwnTurn(here, third)
    await answer(here, second)
  },
]

/** Runs turns of all kinds until the conversation is long enough to be kept. */
async function openLong(): Promise<string> {
  const id = await open()
  for (let round = 0; round < 5; round++) for (const run of kinds) await run(id)
  return id
}

describe('the conversation of a turn', () => {
  it('is what was recorded, whatever this process and others have kept of it', async () => {
    const id = await openLong()
    const turn = await say(id)
    const loaded = await expectSame(here, turn)
    await expectSame(elsewhere, turn)
    expect(loaded?.providerData.size).toBeGreaterThan(0)
    expect(loaded?.secrets.size).toBeGreaterThan(0)
    expect(JSON.stringify(loaded)).toContain(PIXEL.toString('base64'))
    for (const deps of [here, elsewhere]) {
      expect(deps.conversations.get(turn.sessionId)?.messages).toHaveLength((loaded?.messages.length ?? 0) - 1)
    }
    await reason(here, turn, 1, attempt)
    const next = await say(id)
    await expectSame(here, next)
    // An attempt that is late finds more kept than its turn had.
    await expectSame(here, turn)
  })

  it('is not kept of a session that is gone, and not given to another organization', async () => {
    const id = await openLong()
    const turn = await say(id)
    await expectSame(here, turn)
    expect(here.conversations.get(turn.sessionId)).toBeDefined()
    expect(await loadTurn(here, { ...turn, organizationId: newUuid() }, reasonStep(1))).toBeNull()
    await expectSame(here, turn)
    await expectSame(elsewhere, turn)
    await deleteSession(here, ANYBODY, toUuid(id))
    expect(here.conversations.get(turn.sessionId)).toBeUndefined()
    expect(elsewhere.conversations.get(turn.sessionId)).toBeDefined()
    expect(await loadTurn(elsewhere, turn, reasonStep(1))).toBeNull()
    expect(elsewhere.conversations.get(turn.sessionId)).toBeUndefined()
  })
})
