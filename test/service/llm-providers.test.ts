import { call, expectError, type Json, unknownId } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeEach(async () => {
  api = await newOrganization()
})

const LLM_PROVIDERS = '/v1/llm-providers'
const SIMULATOR = `${LLM_PROVIDERS}/provider_01933b5a000070008000000000000101`
const KEY = 'sk-this-is-a-key-of-a-test-0123456789'
const add = (more: object = {}) => call(api, 'POST', LLM_PROVIDERS, { name: 'Mine', provider_type: 'openai', ...more })
const addProvider = async (more: object = {}): Promise<string> => `${LLM_PROVIDERS}/${(await add(more)).body.id}`
const listAll = async (): Promise<Json[]> => (await call(api, 'GET', LLM_PROVIDERS)).body.data

describe('providers', () => {
  it("are added, listed newest first before the installation's, changed and deleted", async () => {
    const first = await add({ name: ' First ', api_key: KEY })
    expect(first).toMatchObject({
      status: 201,
      body: { name: 'First', provider_type: 'openai', base_url: null, api_key_set: true, status: 'active' },
    })
    const second = await add({ name: 'Second', provider_type: 'anthropic' })
    expect(second.body).toMatchObject({ api_key_set: false, last_synced_at: null, is_predefined: false })
    expect((await listAll()).map(({ name }) => name)).toEqual(['Second', 'First', 'LLM simulator'])
    const path = `${LLM_PROVIDERS}/${first.body.id}`
    const change = { name: 'Changed', status: 'disabled', provider_type: 'gemini', api_key: KEY }
    const changed = await call(api, 'PATCH', path, change)
    expect(changed).toMatchObject({
      status: 200,
      body: { name: 'Changed', status: 'disabled', provider_type: 'gemini' },
    })
    expect((await call(api, 'GET', path)).body).toEqual(changed.body)
    for (const { body } of [first, second]) {
      expect((await call(api, 'DELETE', `${LLM_PROVIDERS}/${body.id}`)).status).toBe(204)
    }
    expectError(await call(api, 'GET', path), 404, 'Provider not found')
  })

  it.each<[what: string, body: object, sentence: RegExp]>([
    ['an unknown type', { name: 'A', provider_type: 'telepathy' }, /^provider_type: /],
    ['no type', { name: 'A' }, /^provider_type: /],
    ['an empty name', { name: ' ', provider_type: 'openai' }, /^name: must not be empty/],
    ['a malformed address', { base_url: 'not a url' }, /^base_url: must be an http or https URL/],
    ['another protocol', { base_url: 'ftp://example.com' }, /^base_url: must be an http or https URL/],
    ['credentials in the address', { base_url: 'https://me:secret@example.com/v1' }, /^base_url: .*password/],
    ['an empty query', { base_url: 'https://example.com/v1?' }, /^base_url: must have no query/],
    ['a query', { base_url: 'https://example.com/v1?key=1' }, /^base_url: must have no query/],
    ['a loopback address', { base_url: 'http://127.0.0.1:11434/v1' }, /^base_url: 127\.0\.0\.1 is not on the public/],
    ['localhost', { base_url: 'http://localhost/v1' }, /^base_url: localhost is not on the public/],
    ['a private address', { base_url: 'http://[fd00::1]/v1' }, /^base_url: .* not on the public/],
    [
      'the metadata service',
      { base_url: 'http://169.254.169.254/latest' },
      /^base_url: .* metadata service, which is never called/,
    ],
    ['a key with a line break', { api_key: 'sk-a\nX-Evil: 1' }, /^api_key: must be printable/],
    ['a key that is a mask', { api_key: '***' }, /^api_key: must be a key; \*\*\* keeps/],
    ['a key that is too long', { api_key: 'k'.repeat(8193) }, /^api_key: must be at most 8192/],
  ])('are refused with %s, and the message does not repeat a key', async (_, body, sentence) => {
    const answer = await call(api, 'POST', LLM_PROVIDERS, {
      name: 'A',
      provider_type: 'openai',
      ...body,
      ...without(body),
    })
    expectError(answer, 400, sentence)
    expect(JSON.stringify(answer.body)).not.toMatch(/X-Evil|me:secret/)
  })

  const without = (body: object) => ('name' in body && !('provider_type' in body) ? { provider_type: undefined } : {})

  it('are not found under unknown ids, and ids of another kind are refused', async () => {
    const nowhere = `${LLM_PROVIDERS}/${unknownId('provider')}`
    for (const method of ['GET', 'DELETE']) expectError(await call(api, method, nowhere), 404, 'Provider not found')
    expectError(await call(api, 'PATCH', nowhere, {}), 404, 'Provider not found')
    expectError(await call(api, 'POST', `${nowhere}/sync-models`), 404, 'Provider not found')
    expectError(
      await call(api, 'GET', `${LLM_PROVIDERS}/${unknownId('model')}`),
      400,
      /^provider_id: must be provider_/,
    )
  })

  it('are at most as many as the quota', async () => {
    const other = await newOrganization()
    const body = { name: 'One of many', provider_type: 'llmsim' }
    for (let count = 0; count < 50; count++) {
      expect((await call(other, 'POST', LLM_PROVIDERS, body)).status).toBe(201)
    }
    expectError(await call(other, 'POST', LLM_PROVIDERS, body), 409, /has 50 LLM providers/)
  })
})

describe("a provider's key", () => {
  it('is stored encrypted, and no answer has it', async () => {
    const path = await addProvider({ api_key: ` ${KEY}\n` })
    const [row] = await api.query('SELECT api_key FROM llm_providers WHERE id = $1', [uuidOf(path)])
    expect(row?.api_key.includes(KEY)).toBe(false)
    expect(row?.api_key.length).toBeGreaterThan(KEY.length)
    expect(JSON.stringify([await call(api, 'GET', path), await listAll()])).not.toContain(KEY)
  })

  it.each<[given: unknown, isSet: boolean, isSame: boolean]>([
    ['', false, false],
    ['***', true, true],
    [null, true, true],
    [undefined, true, true],
    ['sk-another-key-0123456789', true, false],
  ])('is removed, kept or replaced by PATCH with %j', async (api_key, isSet, isSame) => {
    const path = await addProvider({ api_key: KEY })
    const stored = async () => (await api.query('SELECT api_key FROM llm_providers WHERE id = $1', [uuidOf(path)]))[0]
    const before = await stored()
    const changed = await call(api, 'PATCH', path, { api_key })
    expect(changed).toMatchObject({ status: 200, body: { api_key_set: isSet } })
    const after = await stored()
    expect(isSame).toBe(after?.api_key !== null && before?.api_key?.equals(after?.api_key ?? Buffer.alloc(0)))
  })

  const uuidOf = (path: string) => path.slice(-32).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
})

describe('the server of a provider', () => {
  const change = async (given: object, body: object) => {
    const path = await addProvider({ provider_type: 'openai_completions', base_url: 'https://a.example/v1', ...given })
    return call(api, 'PATCH', path, body)
  }

  it.each<[what: string, given: object, body: object]>([
    ['another host', { api_key: KEY }, { base_url: 'https://b.example/v1' }],
    ['another port', { api_key: KEY }, { base_url: 'https://a.example:444/v1' }],
    ['another protocol', { api_key: KEY }, { base_url: 'http://a.example/v1', api_key: '***' }],
    ["the provider's own address", { api_key: KEY }, { base_url: '' }],
    ['the address of another vendor', { api_key: KEY, base_url: null }, { provider_type: 'anthropic' }],
  ])('does not change to %s with the key for the one before', async (_, given, body) => {
    expectError(await change(given, body), 400, /^api_key: is required with another server/)
    expect((await change(given, { ...body, api_key: 'sk-for-the-new-server' })).status).toBe(200)
    expect((await change({ ...given, api_key: '' }, body)).status).toBe(200)
  })

  it('may change its path and its protocol with the same key, and is stored normalized', async () => {
    const body = { base_url: ' HTTPS://A.example:443/v2/// ', provider_type: 'anthropic' }
    const changed = await change({ api_key: KEY }, body)
    expect(changed).toMatchObject({ status: 200, body: { base_url: 'https://a.example/v2', api_key_set: true } })
  })
})

describe('a provider of the installation', () => {
  it('may be renamed and disabled in one organization, and is as before in another', async () => {
    const changed = await call(api, 'PATCH', SIMULATOR, { name: 'Our simulator', status: 'disabled' })
    expect(changed).toMatchObject({
      status: 200,
      body: { name: 'Our simulator', status: 'disabled', is_predefined: true, provider_type: 'llmsim' },
    })
    const other = await newOrganization()
    expect((await call(other, 'GET', SIMULATOR)).body).toMatchObject({ name: 'LLM simulator', status: 'active' })
    expect((await call(api, 'PATCH', SIMULATOR, { status: 'active' })).body.name).toBe('Our simulator')
  })

  it('keeps what the environment gives it, and cannot be deleted', async () => {
    for (const change of [{ base_url: 'https://example.com' }, { api_key: 'sk-mine' }, { provider_type: 'openai' }]) {
      expectError(await call(api, 'PATCH', SIMULATOR, change), 400, /is set by the environment of the service/)
    }
    expect((await call(api, 'PATCH', SIMULATOR, { api_key: '***' })).status).toBe(200)
    expectError(await call(api, 'DELETE', SIMULATOR), 400, /comes with the service; PATCH its status to "disabled"/)
  })
})
