import { ModelError } from '../../../domain/models/llm/model.ts'
import { type ListSettings, listModels } from '../../../domain/models/llm/providers/list-models.ts'
import { createGuardedFetch } from '../../../lib/outgoing/guarded-fetch.ts'
import { startWebServer, type WebServer } from '../lib/outgoing/web-server.ts'

const API_KEY = 'sk-secret-0123456789'
const MiB = 1024 * 1024
type Type = ListSettings['type']

/** Answers of the server, one for each request. The last one is repeated. */
let answers: { status?: number; body: unknown; headers?: Record<string, string> }[] = []
let server: WebServer
beforeAll(async () => {
  server = await startWebServer((_, response) => {
    const {
      status = 200,
      body,
      headers = {},
    } = answers[Math.min(server.requests.length, answers.length) - 1] ?? { body: '' }
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body))
  })
})
afterAll(() => server.stop())
beforeEach(() => {
  server.requests.length = 0
})

const list = (type: Type, settings: Partial<ListSettings> = {}) =>
  listModels({
    type,
    baseUrl: `${server.url}/v1`,
    apiKey: API_KEY,
    providerName: 'Acme',
    maxModels: 5000,
    fetch,
    ...settings,
  })

async function failure(type: Type, settings: Partial<ListSettings> = {}): Promise<ModelError> {
  const error = await list(type, settings).catch((thrown: unknown) => thrown)
  if (error instanceof ModelError) return error
  throw new Error('There was no ModelError.', { cause: error })
}

const named = (...names: string[]) => names.map((name) => ({ name, displayName: name }))
const paths = () => server.requests.map(({ url }) => url)

describe('the models of a provider are listed in its order', () => {
  it.each(['openai', 'openai_completions'] as const)('%s', async (type) => {
    answers = [{ body: { object: 'list', data: [{ id: 'b', object: 'model' }, { id: 'a/b:c' }], has_more: true } }]
    expect(await list(type)).toEqual(named('b', 'a/b:c'))
    expect(paths()).toEqual(['/v1/models'])
    expect(server.requests[0]?.headers).toMatchObject({ authorization: `Bearer ${API_KEY}` })
  })

  it('anthropic, in pages', async () => {
    answers = [
      { body: { data: [{ id: 'two', display_name: 'Two' }, { id: 'one' }], has_more: true, last_id: 'one&' } },
      { body: { data: [{ id: 'zero', display_name: 'Zero' }], has_more: false, last_id: 'zero' } },
    ]
    expect(await list('anthropic')).toEqual([
      { name: 'two', displayName: 'Two' },
      { name: 'one', displayName: 'one' },
      { name: 'zero', displayName: 'Zero' },
    ])
    expect(paths()).toEqual(['/v1/models?limit=1000', '/v1/models?limit=1000&after_id=one%26'])
    expect(server.requests[0]?.headers).toMatchObject({ 'x-api-key': API_KEY, 'anthropic-version': '2023-06-01' })
  })

  it('gemini, in pages and only models that generate content', async () => {
    const generating = { supportedGenerationMethods: ['countTokens', 'generateContent'] }
    answers = [
      {
        body: {
          models: [
            { name: 'models/pro', displayName: 'Pro', ...generating },
            { name: 'models/embedding', displayName: 'Embedding', supportedGenerationMethods: ['embedContent'] },
            { name: 'models/old', displayName: 'Old' },
          ],
          nextPageToken: 'p2',
        },
      },
      { body: { models: [{ name: 'models/flash', ...generating }] } },
    ]
    expect(await list('gemini')).toEqual([{ name: 'pro', displayName: 'Pro' }, ...named('flash')])
    expect(paths()).toEqual(['/v1/models?pageSize=1000', '/v1/models?pageSize=1000&pageToken=p2'])
    expect(server.requests[0]?.headers).toMatchObject({ 'x-goog-api-key': API_KEY })
  })

  it.each<[Type, string]>([
    ['openai', 'https://api.openai.com/v1/models'],
    ['openai_completions', 'https://api.openai.com/v1/models'],
    ['anthropic', 'https://api.anthropic.com/v1/models?limit=1000'],
    ['gemini', 'https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000'],
  ])('%s has its own address', async (type, url) => {
    const called: unknown[] = []
    const fetch: typeof globalThis.fetch = async (input) => {
      called.push(input)
      return Response.json({ data: [], models: [] })
    }
    expect(await list(type, { baseUrl: undefined, fetch })).toEqual([])
    expect(called).toEqual([url])
  })

  it('a slash at the end of the base URL, its query and a missing key are fine', async () => {
    answers = [{ body: { data: [] } }]
    expect(await list('openai', { baseUrl: `${server.url}/x//?api-version=2`, apiKey: undefined })).toEqual([])
    expect(paths()).toEqual(['/x/models?api-version=2'])
    expect(server.requests[0]?.headers).not.toHaveProperty('authorization')
  })
})

it('entries that are not usable are skipped', async () => {
  const data = [
    null,
    1,
    'text',
    [],
    {},
    { id: 7 },
    { id: '' },
    { id: ' ' },
    { id: 'a\u0000b' },
    { id: 'a\nb' },
    { id: '\u009b' },
    { id: 'ä'.repeat(128) },
    { id: '\ud800' },
    { id: 'ä'.repeat(127) },
    { id: 'same', display_name: 'First' },
    { id: 'same', display_name: 'Second' },
    { id: 'plain', display_name: 'a\nb' },
    { id: '__proto__', display_name: 8 },
  ]
  answers = [{ body: { data } }]
  expect(await list('anthropic')).toEqual([
    ...named('ä'.repeat(127)),
    { name: 'same', displayName: 'First' },
    ...named('plain', '__proto__'),
  ])
})

describe('a list is not supported', () => {
  it('by the simulator, which is not called', async () => {
    expect(await list('llmsim')).toBe('not_supported')
    expect(server.requests).toHaveLength(0)
  })

  it.each([404, 405, 501])('by an endpoint that answers %s', async (status) => {
    answers = [{ status, body: '<html>' }]
    expect(await list('openai_completions')).toBe('not_supported')
  })

  it('does not depend on a later page', async () => {
    answers = [{ body: { data: [{ id: 'a' }], has_more: true, last_id: 'a' } }, { status: 404, body: 'no' }]
    expect(await failure('anthropic')).toMatchObject({ status: 404 })
  })
})

describe('an answer that is not a list', () => {
  const NO_LIST = 'Acme did not answer with a list of models. Is its base URL right?'
  it.each<[string, Type, unknown]>([
    ['HTML', 'openai', '<!doctype html><title>Acme</title>'],
    ['nothing', 'openai', ''],
    ['broken JSON', 'openai', '{"data": [{"id": "a"}'],
    ['text', 'openai', '"data"'],
    ['null', 'openai', 'null'],
    ['an array', 'openai', '[{"id": "a"}]'],
    ['an object without data', 'openai', { models: [] }],
    ['data of another type', 'anthropic', { data: { id: 'a' } }],
    ['models of another type', 'gemini', { models: 'a' }],
    ['deep nesting', 'openai', `{"data":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}`],
    ['millions of values', 'openai', `{"data":[${'0,'.repeat(1_000_000)}0]}`],
    ['more than 4 MiB', 'openai', { data: [], x: 'x'.repeat(4 * MiB) }],
  ])('is refused with a sentence: %s', async (_, type, body) => {
    answers = [{ body, headers: { 'content-type': 'application/json' } }]
    expect(await failure(type)).toMatchObject({ message: NO_LIST, retryable: false })
  })

  it('is one whose pages have more than 16 MiB together', async () => {
    answers = Array.from({ length: 5 }, (_, page) => ({
      body: { data: [], has_more: true, last_id: `${page}`, x: 'x'.repeat(3.5 * MiB) },
    }))
    expect(await failure('anthropic')).toMatchObject({ message: NO_LIST })
    expect(server.requests).toHaveLength(5)
  })
})

describe('a list has limits', () => {
  const entries = (count: number, page = 0) => Array.from({ length: count }, (_, index) => ({ id: `${page}-${index}` }))

  it('of 5,000 models', async () => {
    answers = [{ body: { data: entries(5000) } }]
    expect(await list('openai')).toHaveLength(5000)
    answers = [{ body: { data: entries(5001) } }]
    const message = 'Acme lists more than 5,000 models, which is the limit.'
    expect(await failure('openai')).toMatchObject({ message, retryable: false })
    server.requests.length = 0
    answers = Array.from({ length: 6 }, (_, page) => ({
      body: { data: entries(1000, page), has_more: page < 5, last_id: `${page}` },
    }))
    expect(await failure('anthropic')).toMatchObject({ message })
  })

  it('of another number of models', async () => {
    answers = [{ body: { data: entries(5001) } }]
    expect(await list('openai', { maxModels: 5001 })).toHaveLength(5001)
    const message = 'Acme lists more than 2 models, which is the limit.'
    expect(await failure('openai', { maxModels: 2 })).toMatchObject({ message, retryable: false })
  })

  it('of twenty pages', async () => {
    answers = Array.from({ length: 21 }, (_, page) => ({ body: { models: [], nextPageToken: `${page}` } }))
    expect(await failure('gemini')).toMatchObject({
      message: 'Acme lists more than 20 pages of models, which is the limit.',
      retryable: false,
    })
    expect(server.requests).toHaveLength(20)
  })

  it.each<[Type, object]>([
    ['anthropic', { data: [{ id: 'a' }], has_more: true, last_id: 'a' }],
    ['gemini', { models: [{ name: 'models/a', supportedGenerationMethods: ['generateContent'] }], nextPageToken: 'a' }],
  ])('and ends with a page token that repeats: %s', async (type, body) => {
    answers = [{ body }]
    expect(await list(type)).toEqual(named('a'))
    expect(server.requests).toHaveLength(2)
  })

  it.each([undefined, null, 7, '', 'x'.repeat(2001)])(
    'and ends with a page token that cannot be one: %#',
    async (last_id) => {
      answers = [{ body: { data: [{ id: 'a' }], has_more: true, last_id } }]
      expect(await list('anthropic')).toEqual(named('a'))
      expect(server.requests).toHaveLength(1)
    },
  )

  it('of half a minute for everything', async () => {
    const { setTimeout } = globalThis
    const timer = jest
      .spyOn(globalThis, 'setTimeout')
      .mockImplementation((run, ms, ...rest) => setTimeout(run, ms === 30_000 ? 0 : ms, ...rest))
    const fetch: ListSettings['fetch'] = (_, init) =>
      new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)))
    const late = await failure('openai', { fetch })
    timer.mockRestore()
    expect(late).toMatchObject({ message: 'Acme did not send its list of models within 30 s.', retryable: true })
  })
})

describe('an error', () => {
  it.each<[string, unknown, string]>([
    ['of OpenAI', { error: { message: `Wrong key ${API_KEY}`, type: 'x' } }, 'Wrong key [key]'],
    ['of Anthropic', { type: 'error', error: { type: 'x', message: 'invalid x-api-key' } }, 'invalid x-api-key'],
    ['of Gemini', [{ error: { code: 400, message: 'API key not valid.' } }], 'API key not valid.'],
    ['as text', { error: 'no\nway' }, 'no way'],
    ['as a message', { message: 'no way' }, 'no way'],
    ['as a detail', { error: {}, detail: 'no way' }, 'no way'],
    ['without JSON', '<html>no</html>', 'Unauthorized'],
    ['that is too long to look at', { message: 'x'.repeat(200_000) }, 'Unauthorized'],
  ])('has the reason of the provider, without the key: %s', async (_, body, reason) => {
    answers = [{ status: 401, body }]
    expect(await failure('openai')).toMatchObject({
      message: `Acme answered 401: ${reason}`,
      status: 401,
      retryable: false,
    })
  })

  it('of a server that is overloaded is retryable', async () => {
    answers = [{ status: 503, body: '' }]
    expect(await failure('openai')).toMatchObject({ status: 503, retryable: true })
  })

  it('of a redirect does not send the key elsewhere', async () => {
    const second = await startWebServer((_, response) => response.end('{"data":[]}'))
    answers = [{ status: 307, body: '', headers: { location: second.url } }]
    const plain = await failure('anthropic')
    const guarded = createGuardedFetch({
      allowPrivateNetwork: true,
      headersTimeoutMs: 60_000,
      idleTimeoutMs: 60_000,
      maxBytes: MiB,
    })
    const refused = await failure('anthropic', { fetch: guarded.fetch })
    await guarded.close()
    await second.stop()
    expect([plain.status, second.requests.length, refused.retryable]).toEqual([307, 0, false])
    expect(refused.message).toContain('its URL in the settings should be the final address')
  })

  it('of a connection is a sentence without the key', async () => {
    const free = await startWebServer(() => {})
    await free.stop()
    expect(await failure('openai', { baseUrl: free.url })).toMatchObject({
      message: 'Acme refused the connection. Is its base URL right, and does it run?',
      retryable: true,
      cause: undefined,
    })
    const lost = { fetch: () => Promise.reject(Object.assign(new Error(), { code: 'EAI_AGAIN' })) }
    expect(await failure('openai', { ...lost, baseUrl: undefined })).toMatchObject({
      message: 'The address of Acme was not found. Can this service reach the internet?',
    })
    expect((await failure('openai', lost)).message).toMatch(/^The address of Acme was not found. Is its base URL/)
    const badKey = await failure('openai', { apiKey: `${API_KEY}\n1` })
    expect(badKey.message).not.toContain('secret')
    expect(await failure('openai', { baseUrl: 'acme' })).toMatchObject({
      message: 'The base URL of Acme is not a valid URL.',
      retryable: false,
    })
  })

  it('is the reason of the caller when the caller aborts', async () => {
    const caller = new AbortController()
    const fetch: ListSettings['fetch'] = (input, init) => {
      caller.abort(new Error('cancelled'))
      return globalThis.fetch(input, init)
    }
    await expect(list('openai', { fetch, signal: caller.signal })).rejects.toThrow('cancelled')
    await expect(list('openai', { signal: caller.signal })).rejects.toThrow('cancelled')
  })
})
