import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  expectQuota,
  type Json,
  textMessage,
  unknownId,
  waitUntilIdle,
} from '../support/http.ts'
import { expectSoundRecord } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const STORAGE = { capabilities: [{ ref: 'session_storage' }] }
const kv = (args: object) => ({ tool_calls: [{ name: 'kv_store', arguments: args }] })
const secret = (args: object) => ({ tool_calls: [{ name: 'secret_store', arguments: args }] })

/** Posts a message and returns the results of all calls of the session so far. */
async function resultsAfter(id: string, text: string): Promise<Json[]> {
  await call(api, 'POST', `/v1/sessions/${id}/messages`, textMessage(text))
  const events = await waitUntilIdle(api, id)
  expectSoundRecord(events)
  return events
    .filter(({ type }) => type === 'tool.completed')
    .map(({ data }) => (data.status === 'success' ? JSON.parse(data.result[0].text) : data.error))
}
const list = (id: string, of: string) => call(api, 'GET', `/v1/sessions/${id}/storage/${of}`)
const time = expect.stringMatching(/^\d{4}-.*Z$/)

describe('session_storage', () => {
  it('keeps values and secrets from turn to turn, which its user sees in lists', async () => {
    const id = await createScriptedSession(
      api,
      [
        ...[
          kv({ operation: 'set', key: 'b/lang', value: 'pt 🇵🇹' }),
          kv({ operation: 'set', key: 'a', value: '{"n":1}' }),
        ],
        ...[secret({ operation: 'set', name: 'weather', value: 'text-of-a-test' }), { text: 'kept' }],
        ...[kv({ operation: 'get', key: 'b/lang' }), kv({ operation: 'list', prefix: 'b/' })],
        ...[secret({ operation: 'get', name: 'weather' }), secret({ operation: 'list' }), kv({ operation: 'get' })],
        ...[kv({ operation: 'delete', key: 'a' }), secret({ operation: 'delete', name: 'weather' }), { text: 'read' }],
      ],
      STORAGE,
    )
    expect(await resultsAfter(id, 'Keep this')).toEqual([
      { key: 'b/lang', size_bytes: 11, replaced: false },
      { key: 'a', size_bytes: 7, replaced: false },
      { name: 'weather', replaced: false },
    ])
    const times = { created_at: time, updated_at: time }
    expect(await list(id, 'keys')).toMatchObject({
      status: 200,
      body: {
        data: [
          { key: 'a', value: '{"n":1}', ...times },
          { key: 'b/lang', value: 'pt 🇵🇹', ...times },
        ],
      },
    })
    expect((await list(id, 'secrets')).body).toEqual({ data: [{ name: 'weather', ...times }] })
    expect((await call(api, 'GET', `/v1/sessions/${id}`)).body.features.sort()).toEqual(['key_value', 'secrets'])
    expect((await resultsAfter(id, 'What was it?')).slice(3)).toEqual([
      { key: 'b/lang', found: true, value: 'pt 🇵🇹', size_bytes: 11, next_offset: null },
      { keys: [{ key: 'b/lang', size_bytes: 11, updated_at: time }], next_offset: null },
      expect.objectContaining({ name: 'weather', found: true }),
      { secrets: [{ name: 'weather', updated_at: time }], next_offset: null },
      'operation "get" needs key.',
      { key: 'a', deleted: true },
      { name: 'weather', deleted: true },
    ])
    expect([(await list(id, 'keys')).body.data.length, (await list(id, 'secrets')).body.data]).toEqual([1, []])
  })

  it('lists values of many pages whole and by key, in bytes', async () => {
    const id = await createSession(api)
    const uuid = id.slice('session_'.length)
    await api.query(`
      INSERT INTO session_values (session_id, key, value, created_at, updated_at)
      SELECT '${uuid}', chr(64 + n % 50) || n, repeat(chr(945 + n % 9), CASE WHEN n % 100 = 0 THEN 500000 ELSE n END), now(), now()
      FROM generate_series(1, 600) AS n`)
    await api.query(`
      INSERT INTO session_secrets (session_id, name, value, created_at, updated_at)
      SELECT '${uuid}', 'n' || n, '', now(), now() FROM generate_series(1, 600) AS n`)
    const { data } = (await list(id, 'keys')).body
    const keys = data.map(({ key }: Json) => key)
    expect(keys).toEqual([...keys].sort())
    expect([new Set(keys).size, data[0].value.length]).toEqual([600, expect.any(Number)])
    for (const { key, value } of data) {
      const n = Number(key.slice(1))
      const length = n % 100 === 0 ? 500_000 : n
      if (value.length !== length || value[0] !== String.fromCharCode(945 + (n % 9))) throw new Error(`${key} is wrong`)
    }
    const names = (await list(id, 'secrets')).body.data.map(({ name }: Json) => name)
    expect([names.length, names]).toEqual([600, [...names].sort()])
  })

  it('takes values and secrets from its user, which tools read and no answer has', async () => {
    const id = await createScriptedSession(
      api,
      [kv({ operation: 'get', key: 'b/ü' }), secret({ operation: 'get', name: 'weather' }), { text: 'read' }],
      STORAGE,
    )
    const put = (path: string, value: unknown) => call(api, 'PUT', `/v1/sessions/${id}/storage/${path}`, { value })
    const remove = (path: string) => call(api, 'DELETE', `/v1/sessions/${id}/storage/${path}`)
    expect(await put('keys/b%2F%C3%BC', 'first')).toMatchObject({ status: 204 })
    expect(await put('keys/b%2F%C3%BC', 'second')).toMatchObject({ status: 204 })
    expect(await put('secrets/weather', 'text-of-a-test')).toMatchObject({ status: 204 })
    const times = { created_at: time, updated_at: time }
    expect((await list(id, 'keys')).body).toEqual({ data: [{ key: 'b/ü', value: 'second', ...times }] })
    expect((await list(id, 'secrets')).body).toEqual({ data: [{ name: 'weather', ...times }] })
    expect(await resultsAfter(id, 'What is it?')).toMatchObject([
      { value: 'second' },
      { found: true, value: '[secret]' },
    ])
    for (const path of ['keys/b%2F%C3%BC', 'secrets/weather']) expect((await remove(path)).status).toBe(204)
    expectError(await remove('keys/b%2F%C3%BC'), 404, 'Value not found')
    expectError(await remove('secrets/weather'), 404, 'Secret not found')
    expect([(await list(id, 'keys')).body.data, (await list(id, 'secrets')).body.data]).toEqual([[], []])
  })

  it.each<[string, string, unknown, number, RegExp]>([
    ['no value', 'secrets/a', {}, 400, /^value: /],
    ['another field', 'secrets/a', { secret: 'text-of-a-test' }, 400, /^value: /],
    ['a number', 'keys/a', { value: 1 }, 400, /^value: /],
    ['a large secret', 'secrets/a', { value: 'x'.repeat(64 * 1024 + 1) }, 400, /^value: must be at most 65536 bytes/],
    ['a large value', 'keys/a', { value: 'ü'.repeat(512 * 1024 + 1) }, 400, /^value: must be at most 1048576 bytes/],
    ['NUL', 'keys/a', { value: 'a\0' }, 400, /NUL/],
    ['a name with NUL', 'secrets/a%00b', { value: 'a' }, 400, /^name: must not contain a NUL/],
    ['a key that is not UTF-8', 'keys/%ff', { value: 'a' }, 400, /percent-encoded UTF-8/],
    ['a long key', `keys/${'x'.repeat(256)}`, { value: 'a' }, 400, /^key: must have at most 255 characters/],
  ])('refuses %s from its user', async (_, path, body, status, sentence) => {
    const id = await createSession(api)
    expectError(await call(api, 'PUT', `/v1/sessions/${id}/storage/${path}`, body), status, sentence)
    expect([(await list(id, 'keys')).body.data, (await list(id, 'secrets')).body.data]).toEqual([[], []])
  })

  it('holds its user to the quota of the agent', async () => {
    const id = await createSession(api)
    await api.query(`
      INSERT INTO session_secrets (session_id, name, value, created_at, updated_at)
      SELECT '${id.slice('session_'.length)}', 'n' || n, '', now(), now() FROM generate_series(1, 1000) AS n`)
    const put = (path: string) => call(api, 'PUT', `/v1/sessions/${id}/storage/secrets/${path}`, { value: 'a' })
    expectQuota(await put('more'), 'A session has at most 1000 secrets; delete some first')
    expect((await put('n7')).status).toBe(204)
  })

  it('has no lists of a session that is not there', async () => {
    for (const kind of ['keys', 'secrets']) {
      const nowhere = unknownId('session')
      expectError(await list(nowhere, kind), 404, 'Session not found')
      const path = `/v1/sessions/${nowhere}/storage/${kind}/a`
      expectError(await call(api, 'PUT', path, { value: 'a' }), 404, 'Session not found')
      expectError(await call(api, 'DELETE', path), 404, 'Session not found')
      expect((await list(await createSession(api), kind)).body).toEqual({ data: [] })
    }
  })
})
