import { call, createSession, expectError, type Json, textMessage, unknownId } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeEach(async () => {
  api = await newOrganization()
})

const MODELS = '/v1/llm-models'
const simulated = (number: string) => `model_01933b5a00007000800000000000${number}`
const [DEFAULT, ECHO] = [simulated('0101'), simulated('0103')]
const PREDEFINED = [
  'llmsim-default',
  'llmsim-latency',
  'llmsim-echo',
  'llmsim-lorem-20',
  'llmsim-lorem-200',
  'llmsim-lorem-2000',
  'llmsim-script',
]

const patch = (id: string, body: object) => call(api, 'PATCH', `${MODELS}/${id}`, body)
const names = async (query = '', path = MODELS): Promise<string[]> =>
  (await call(api, 'GET', path + query)).body.data.map(({ model_id }: Json) => model_id)
const defaults = async (): Promise<string[]> =>
  (await call(api, 'GET', MODELS)).body.data.filter(({ is_default }: Json) => is_default).map(({ id }: Json) => id)

async function addProvider(more: object = {}): Promise<string> {
  const { body } = await call(api, 'POST', '/v1/llm-providers', { name: 'Mine', provider_type: 'llmsim', ...more })
  return `/v1/llm-providers/${body.id}`
}
const add = (provider: string, model_id: string, more: object = {}) =>
  call(api, 'POST', `${provider}/models`, { model_id, display_name: model_id, ...more })

/** Returns the model that a turn of a new session used. */
async function used(session: object = {}, message: Record<string, unknown> = {}): Promise<string> {
  const id = await createSession(api, undefined, session)
  const { body } = await call(api, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage('Hi', message))
  return body.output?.metadata.model ?? body.turn.error_code
}

describe('models', () => {
  it("are the installation's, one of them the default, and each can be read", async () => {
    const { status, body } = await call(api, 'GET', MODELS)
    expect(status).toBe(200)
    expect(body.data.map((model: Json) => model.model_id)).toEqual(PREDEFINED)
    expect(await defaults()).toEqual([DEFAULT])
    for (const model of body.data) {
      expect(model).toMatchObject({
        source: 'predefined',
        status: 'active',
        profile: { cost: { input: 0, output: 0 } },
      })
      expect((await call(api, 'GET', `${MODELS}/${model.id}`)).body).toEqual(model)
    }
  })

  it("are added to a provider, listed after the installation's, changed and deleted", async () => {
    const provider = await addProvider({ provider_type: 'openai', name: 'Hosted' })
    const first = await add(provider, 'gpt-5-mini', { capabilities: ['vision'], is_favorite: true })
    expect(first).toMatchObject({ status: 201, body: { source: 'manual', is_default: false, is_favorite: true } })
    const second = await add(provider, 'some/model:free')
    expect((await names()).slice(-2)).toEqual(['gpt-5-mini', 'some/model:free'])
    expect(await names('', `${provider}/models`)).toEqual(['gpt-5-mini', 'some/model:free'])
    expect((await call(api, 'GET', `${MODELS}/${first.body.id}`)).body).toMatchObject({
      ...first.body,
      provider_name: 'Hosted',
      provider_type: 'openai',
      profile: { family: expect.any(String), limits: { context: expect.any(Number) }, cost: expect.any(Object) },
    })
    expect((await call(api, 'GET', `${MODELS}/${second.body.id}`)).body.profile).toBeNull()
    const change = { model_id: 'gpt-x', display_name: 'X', capabilities: [], is_favorite: false, status: 'disabled' }
    expect(await patch(first.body.id, change)).toMatchObject({ status: 200, body: change })
    expect((await call(api, 'DELETE', `${MODELS}/${first.body.id}`)).status).toBe(204)
    expectError(await call(api, 'GET', `${MODELS}/${first.body.id}`), 404, 'Model not found')
    await call(api, 'DELETE', provider)
    expect(await names()).toEqual(PREDEFINED)
  })

  it('are found by source and by favourite', async () => {
    await add(await addProvider(), 'llmsim-lorem-5', { is_favorite: true })
    expect((await patch(ECHO, { is_favorite: true })).body).toMatchObject({ is_favorite: true, source: 'predefined' })
    expect(await names('?favorites_only=true')).toEqual(['llmsim-echo', 'llmsim-lorem-5'])
    expect(await names('?source=manual')).toEqual(['llmsim-lorem-5'])
    expect(await names('?source=predefined')).toEqual(PREDEFINED)
    expect(await names('?source=discovered')).toEqual([])
    expect(await names('?source=predefined&favorites_only=true')).toEqual(['llmsim-echo'])
    expectError(await call(api, 'GET', `${MODELS}?source=dreams`), 400, /^source: /)
    expectError(await call(api, 'GET', `${MODELS}?favorites_only=maybe`), 400, /^favorites_only: must be true or false/)
  })

  it('are refused when they cannot work, are there already, or are too many', async () => {
    const provider = await addProvider()
    expectError(await add(provider, 'gpt-5'), 400, /^model_id: must be llmsim-default/)
    expectError(await add(provider, 'a\u0007b'), 400, /^model_id: must have no control/)
    expectError(await add(provider, ''), 400, /^model_id: must not be empty/)
    expectError(await add(provider, 'llmsim-echo', { capabilities: 'vision' }), 400, /^capabilities: /)
    const { body } = await add(provider, 'llmsim-lorem-7')
    expectError(
      await add(provider, 'llmsim-lorem-7'),
      409,
      `model_id: the provider has this model already, as ${body.id}`,
    )
    expectError(
      await patch((await add(provider, 'llmsim-echo')).body.id, { model_id: 'llmsim-lorem-7' }),
      409,
      /already/,
    )
    const simulator = '/v1/llm-providers/provider_01933b5a000070008000000000000101'
    expectError(await add(simulator, 'llmsim-echo'), 409, `model_id: the provider has this model already, as ${ECHO}`)
    expect((await add(simulator, 'llmsim-lorem-9')).status).toBe(201)
    expectError(await add(`/v1/llm-providers/${unknownId('provider')}`, 'llmsim-echo'), 404, 'Provider not found')
  })

  it('of the installation keep their names and cannot be deleted', async () => {
    expectError(
      await patch(ECHO, { model_id: 'llmsim-script' }),
      400,
      /^model_id: must stay as it is for a predefined model$/,
    )
    expect((await patch(ECHO, { model_id: 'llmsim-echo', display_name: 'Parrot' })).body.display_name).toBe('Parrot')
    expectError(await call(api, 'DELETE', `${MODELS}/${ECHO}`), 400, /comes with the service/)
    expectError(await call(api, 'GET', `${MODELS}/${unknownId('model')}`), 404, 'Model not found')
    expectError(await call(api, 'GET', `${MODELS}/llmsim-echo`), 400, /^id: must be model_/)
  })
})

describe('the default model', () => {
  it('is one, the last that was made it', async () => {
    expect((await patch(ECHO, { is_default: true })).body.is_default).toBe(true)
    expect(await defaults()).toEqual([ECHO])
    const { body } = await add(await addProvider(), 'llmsim-lorem-5', { is_default: true })
    expect(await defaults()).toEqual([body.id])
    await patch(body.id, { is_default: false })
    expect(await defaults()).toEqual([DEFAULT])
    await patch(DEFAULT, { is_default: false })
    expect(await defaults()).toEqual([DEFAULT])
  })

  it('is one, however many are made it at once', async () => {
    const ids = ['0101', '0102', '0103', '0104', '0107'].map(simulated)
    const answers = await Promise.all(ids.map((id) => patch(id, { is_default: true })))
    expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 200))
    expect(await defaults()).toHaveLength(1)
  })

  it('serves turns that name none, and falls back when it is disabled or deleted', async () => {
    const provider = await addProvider()
    const { body } = await add(provider, 'llmsim-lorem-5', { is_default: true })
    expect(await used()).toBe('llmsim-lorem-5')
    await call(api, 'PATCH', provider, { status: 'disabled' })
    expect([await used(), await defaults()]).toEqual(['llmsim-default', [DEFAULT]])
    expectError(await patch(ECHO, { is_default: true, status: 'disabled' }), 400, /^is_default: .* disabled/)
    await call(api, 'PATCH', provider, { status: 'active' })
    expect(await used()).toBe('llmsim-lorem-5')
    await call(api, 'DELETE', `${MODELS}/${body.id}`)
    expect([await used(), await defaults()]).toEqual(['llmsim-default', [DEFAULT]])
  })
})

describe('a disabled model', () => {
  it('stays in its list, and is refused where it is named', async () => {
    await patch(ECHO, { status: 'disabled' })
    expect(await names()).toContain('llmsim-echo')
    const sentence = /model_[0-9a-f]+ or its provider is disabled/
    const agent = { name: 'A', system_prompt: 'B', default_model_id: ECHO }
    expectError(await call(api, 'POST', '/v1/agents', agent), 400, sentence)
    expectError(await call(api, 'POST', '/v1/sessions', { model_id: ECHO }), 400, sentence)
    const session = await createSession(api)
    const message = textMessage('Hi', { controls: { model_id: ECHO } })
    expectError(await call(api, 'POST', `/v1/sessions/${session}/messages`, message), 400, sentence)
  })

  it('is one whose provider is disabled, too, and keeps its own status', async () => {
    const provider = await addProvider()
    const { id } = (await add(provider, 'llmsim-lorem-6')).body
    const listed = async () =>
      (await call(api, 'GET', '/v1/llm-models')).body.data.find((model: Json) => model.id === id).status
    for (const status of ['disabled', 'active']) {
      await call(api, 'PATCH', provider, { status })
      const one = (await call(api, 'GET', `/v1/llm-models/${id}`)).body.status
      const own = (await call(api, 'GET', `${provider}/models`)).body.data[0].status
      expect([await listed(), one, own]).toEqual([status, status, 'active'])
    }
  })

  it('lets sessions that name it fall through, also when its provider is deleted', async () => {
    const provider = await addProvider()
    const { body } = await add(provider, 'llmsim-lorem-5')
    const session = await createSession(api, undefined, { model_id: body.id })
    const ask = async () =>
      (await call(api, 'POST', `/v1/sessions/${session}/messages?wait=60`, textMessage('Hi'))).body.output.metadata
        .model
    expect(await ask()).toBe('llmsim-lorem-5')
    await patch(body.id, { status: 'disabled' })
    expect(await ask()).toBe('llmsim-default')
    await patch(body.id, { status: 'active' })
    await call(api, 'DELETE', provider)
    expect(await ask()).toBe('llmsim-default')
  })

  it('fails a turn clearly when nothing is left to serve it', async () => {
    await call(api, 'PATCH', '/v1/llm-providers/provider_01933b5a000070008000000000000101', { status: 'disabled' })
    expect([await used(), await defaults()]).toEqual(['no_model', []])
  })
})
