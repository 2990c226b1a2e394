import { type Answer, call, createSession, expectError, type Json, unknownId } from '../support/http.ts'
import { exchange, head } from '../support/raw.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
let session: string
beforeAll(async () => {
  api = await newOrganization()
})
beforeEach(async () => {
  session = await createSession(api)
})

const fs = (method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> =>
  call(api, method, `/v1/sessions/${session}/fs${path}`, body, headers)
const write = async (path: string, content = path, more: object = {}): Promise<Json> => {
  const { status, body } = await fs('POST', path, { content, ...more })
  expect([status, body.path]).toEqual([201, path])
  return body
}
const contentOf = async (path: string): Promise<string> => (await fs('GET', path)).body.content
/** Paths of a directory, as its list has them. */
const list = async (path = '', query = ''): Promise<string[]> =>
  (await fs('GET', `${path}${query}`)).body.data.map((file: Json) => file.path)
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')

const UNPRINTABLE = Buffer.from(Array.from({ length: 256 * 1024 + 1 }, (_, index) => (index * 7) % 256))

describe('a file', () => {
  it('is written, described, read and deleted', async () => {
    const { status, body: made } = await fs('POST', '/docs/a.txt', { content: 'Hello' })
    expect(status).toBe(201)
    const { content, encoding, ...info } = (await fs('GET', '/docs/a.txt')).body
    expect([content, encoding]).toEqual(['Hello', 'text'])
    expect(info).toMatchObject({
      session_id: session,
      path: '/docs/a.txt',
      name: 'a.txt',
      is_directory: false,
      is_readonly: false,
      size_bytes: 5,
    })
    expect(made).toEqual({ ...info, content: 'Hello', encoding: 'text' })
    const { id, session_id, ...stat } = info
    expect((await fs('POST', '/_/stat', { path: 'docs//a.txt/' })).body).toEqual(stat)
    expect((await fs('DELETE', '/docs/a.txt')).body).toEqual({ deleted: true })
    expect((await fs('DELETE', '/docs/a.txt')).body).toEqual({ deleted: false })
    expectError(await fs('GET', '/docs/a.txt'), 404, 'File not found')
    expect(await list()).toEqual(['/docs'])
  })

  it('keeps its id when its content is replaced', async () => {
    const { id, created_at } = await write('/a.txt')
    const { status, body } = await fs('PUT', '/a.txt', { content: 'Other, and longer' })
    expect([status, body]).toMatchObject([200, { id, created_at, size_bytes: 17, content: 'Other, and longer' }])
    expect(await contentOf('/a.txt')).toBe('Other, and longer')
    expect((await fs('PUT', '/a.txt', {})).body).toMatchObject({ id, size_bytes: 17 })
    expectError(await fs('PUT', '/b.txt', { content: '' }), 404, 'File not found')
    expectError(await fs('PUT', '/b.txt', {}), 404, 'File not found')
  })

  it('is not changed while it is read-only, but moved, copied and deleted', async () => {
    await write('/a.txt', 'old', { is_readonly: true })
    expectError(await fs('PUT', '/a.txt', { content: 'new' }), 400, /^\/a\.txt is read-only/)
    expect((await fs('POST', '/_/move', { src_path: '/a.txt', dst_path: '/b.txt' })).body.is_readonly).toBe(true)
    expect((await fs('POST', '/_/copy', { src_path: '/b.txt', dst_path: '/c.txt' })).body.is_readonly).toBe(false)
    expect((await fs('PUT', '/b.txt', { is_readonly: false })).body.is_readonly).toBe(false)
    expect((await fs('PUT', '/b.txt', { content: 'new', is_readonly: true })).body.is_readonly).toBe(true)
    expect((await fs('DELETE', '/b.txt')).body).toEqual({ deleted: true })
  })

  it.each([
    ['line ends, a byte order mark and other scripts', '\ufeffone\r\ntwo\n\ud83d\ude42 \u4e2d\u6587 \u0007"\\'],
    ['nothing', ''],
    ['many chunks of characters of several bytes', '\u20ac\ud83d\ude42x'.repeat(100_000)],
  ])('round-trips text of %s', async (_, content) => {
    await write('/a.txt', content)
    expect((await fs('GET', '/a.txt')).body).toMatchObject({ content, encoding: 'text' })
  })

  it('round-trips bytes', async () => {
    await write('/a.bin', base64(UNPRINTABLE), { encoding: 'base64' })
    const { content, encoding, size_bytes } = (await fs('GET', '/a.bin')).body
    expect([size_bytes, encoding]).toEqual([UNPRINTABLE.length, 'base64'])
    expect(Buffer.from(content, 'base64').equals(UNPRINTABLE)).toBe(true)
  })

  it('is given as base64 when it was written so', async () => {
    await write('/a.txt', base64(Buffer.from('Hello')), { encoding: 'base64' })
    expect((await fs('GET', '/a.txt')).body).toMatchObject({ encoding: 'base64', content: 'SGVsbG8=' })
    await fs('PUT', '/a.txt', { content: 'Hello' })
    expect((await fs('GET', '/a.txt')).body).toMatchObject({ encoding: 'text', content: 'Hello' })
  })

  it('has up to 10 MiB', async () => {
    const whole = 'a'.repeat(10 * 1024 * 1024)
    await write('/a.txt', whole)
    expect(await contentOf('/a.txt')).toBe(whole)
    expectError(await fs('PUT', '/a.txt', { content: `${whole}a` }), 413, /^content: must be at most 10485760 bytes/)
    expectError(await fs('POST', '/b.txt', { content: 'a'.repeat(14 * 1024 * 1024) }), 413, /body/)
    const most = base64(Buffer.alloc(10 * 1024 * 1024, 7))
    expect((await fs('PUT', '/a.txt', { content: most, encoding: 'base64' })).status).toBe(200)
    expect(await contentOf('/a.txt')).toBe(most)
  })

  it('is created once with an Idempotency-Key', async () => {
    const keyed = (path: string, body: object) => fs('POST', path, body, { 'Idempotency-Key': 'one' })
    const first = await keyed('/a.txt', { content: 'x' })
    expect(await keyed('/a.txt', { content: 'x' })).toMatchObject({ status: 201, body: first.body })
    expectError(await keyed('/a.txt', { content: 'y' }), 409, /Idempotency-Key/)
  })

  it('is created by one of two who do it at once', async () => {
    const both = await Promise.all([fs('POST', '/a', { content: '1' }), fs('POST', '/a', { content: '2' })])
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
    const winner = both.findIndex(({ status }) => status === 201)
    expect(await contentOf('/a')).toBe(`${winner + 1}`)
  })
})

describe('a directory', () => {
  beforeEach(async () => {
    for (const path of ['/b.txt', '/a/z.txt', '/a/b/c.txt', '/a.txt', '/a-b.txt']) await write(path)
  })

  it('lists what is in it, directories first, or everything below it by path', async () => {
    expect(await list()).toEqual(['/a', '/a-b.txt', '/a.txt', '/b.txt'])
    expect(await list('/a/')).toEqual(['/a/b', '/a/z.txt'])
    expect(await list('/a', '?recursive=true')).toEqual(['/a/b', '/a/b/c.txt', '/a/z.txt'])
    expect(await list('', '?recursive=1')).toEqual([
      ...['/a', '/a-b.txt', '/a.txt', '/a/b', '/a/b/c.txt', '/a/z.txt', '/b.txt'],
    ])
    expectError(await fs('GET', '/nowhere'), 404, 'File not found')
    expectError(await fs('GET', '/?recursive=perhaps'), 400, /^recursive: /)
  })

  it('is made, also where it is already', async () => {
    const first = await fs('POST', '/new/er', { is_directory: true })
    expect(first).toMatchObject({ status: 201, body: { path: '/new/er', is_directory: true, size_bytes: 0 } })
    expect(await fs('POST', '/new/er', { is_directory: true })).toMatchObject({ status: 201, body: first.body })
    expectError(await fs('POST', '/b.txt', { is_directory: true }), 409, '/b.txt exists already')
    expectError(await fs('POST', '/a', { content: '' }), 409, '/a exists already')
    expectError(await fs('POST', '/b.txt/c', { content: '' }), 409, /^\/b\.txt is a file/)
    expectError(await fs('PUT', '/a', { content: '' }), 400, '/a is a directory, not a file')
  })

  it('is moved with everything in it', async () => {
    const { status, body } = await fs('POST', '/_/move', { src_path: '/a', dst_path: '/x/y' })
    expect([status, body]).toMatchObject([200, { path: '/x/y', is_directory: true }])
    expect(await list('', '?recursive=true')).toEqual([
      ...['/a-b.txt', '/a.txt', '/b.txt', '/x', '/x/y', '/x/y/b', '/x/y/b/c.txt', '/x/y/z.txt'],
    ])
    expect(await contentOf('/x/y/b/c.txt')).toBe('/a/b/c.txt')
  })

  it.each([
    ['move', '/a', '/a/b/c', 400, /or is that directory$/],
    ['move', '/a', '/a', 400, /moved or copied/],
    ['move', '/a', '/b.txt', 409, '/b.txt exists already'],
    ['move', '/a', '/b.txt/a', 409, /is a file/],
    ['move', '/nowhere', '/c', 404, 'File not found'],
    ['move', '/', '/c', 400, /root/],
    ['copy', '/a', '/c', 400, '/a is a directory, not a file'],
    ['copy', '/b.txt', '/a', 409, '/a exists already'],
    ['copy', '/nowhere', '/c', 404, 'File not found'],
  ])('%s from %s to %s: %d', async (verb, src_path, dst_path, status, sentence) => {
    expectError(await fs('POST', `/_/${verb}`, { src_path, dst_path }), status, sentence)
    expect(await list('', '?recursive=true')).toHaveLength(7)
  })

  it('is deleted with everything in it only when asked to', async () => {
    expectError(await fs('DELETE', '/a'), 400, /^\/a is not empty/)
    expect((await fs('DELETE', '/a?recursive=true')).body).toEqual({ deleted: true })
    expect(await list('', '?recursive=true')).toEqual(['/a-b.txt', '/a.txt', '/b.txt'])
    expectError(await fs('DELETE', '/'), 400, /root/)
    expectError(await fs('POST', '/', { content: '' }), 400, /root/)
  })

  it('has no chunks left of what was deleted or replaced', async () => {
    await fs('PUT', '/b.txt', { content: 'other' })
    await fs('POST', '/_/copy', { src_path: '/b.txt', dst_path: '/c.txt' })
    await fs('DELETE', '/a?recursive=true')
    const counts = await api.query(
      `SELECT (SELECT count(*)::int FROM session_file_chunks WHERE session_id = $1) AS chunks, count, bytes::int
        FROM session_file_totals WHERE session_id = $1`,
      [session.replace('session_', '')],
    )
    expect(counts).toEqual([{ chunks: 4, count: 4, bytes: '/a.txt/a-b.txt'.length + 10 }])
  })
})

describe('a path', () => {
  it.each([
    ['a/../b', /segment \. or \.\./],
    ['%2e%2e/etc/passwd', /segment \. or \.\./],
    ['a/.', /segment \. or \.\./],
    ['a%00b', /^path: must not contain control characters/],
    ['a%0D%0Ab', /^path: must not contain control characters/],
    ['a%C2%85b', /^path: must not contain control characters/],
    ['_x', /begins with _/],
    ['a/_/grep', /begins with _/],
    ['_/other', /begins with _/],
    ['a'.repeat(1024), /at most 1024 bytes/],
    ['\u20ac'.repeat(342), /at most 1024 bytes/],
    ['a/'.repeat(65), /at most 64 segments/],
    ['%zz', /percent-encoded UTF-8/],
    ['x'.repeat(20_000), /path/],
  ])('%s is refused', async (path, sentence) => {
    const { url, headers } = api
    const target = `/v1/sessions/${session}/fs/${path.replaceAll('\u20ac', '%E2%82%AC')}`
    const sent = { ...headers, 'Content-Type': 'application/json', 'Content-Length': '2' }
    const { status, body } = await exchange(url, `${head('POST', target, sent)}{}`)
    if (path.length === 20_000) expect([400, 431]).toContain(status)
    else expect([status, JSON.parse(body).error]).toEqual([400, expect.stringMatching(sentence)])
  })

  it.each([
    ['/a%2Fb.txt', '/a/b.txt'],
    ['//a///b.txt/', '/a/b.txt'],
    ['/with%20space/%E4%B8%AD.txt', '/with space/\u4e2d.txt'],
    ['/grep', '/grep'],
    ['/%E2%80%AEgnp.exe', '/\u202egnp.exe'],
    ['/a_b/-/~/%25', '/a_b/-/~/%'],
    [`/${'a/'.repeat(63)}b`, `/${'a/'.repeat(63)}b`],
  ])('%s is %s', async (sent, path) => {
    expect(await fs('POST', sent, {})).toMatchObject({ status: 201, body: { path, size_bytes: 0 } })
    expect((await fs('GET', sent)).body.path).toBe(path)
  })

  it('that is a word of a route can be read, and is not there', async () => {
    expectError(await fs('GET', '/_/grep'), 404, 'File not found')
    expect((await fs('DELETE', '/_/grep')).body).toEqual({ deleted: false })
  })

  it('with control characters, of an earlier release, can be deleted alone', async () => {
    await write('/a/b')
    await write('/a/c')
    await api.query("UPDATE session_files SET path = E'/a/b\\n' WHERE path = '/a/b' AND session_id = $1", [
      session.replace('session_', ''),
    ])
    expect((await fs('DELETE', '/a/b%0A')).body).toEqual({ deleted: true })
    expect(await list('/a')).toEqual(['/a/c'])
    expectError(await fs('DELETE', '/a/c%00'), 400, /^path: .*control/)
  })

  it('that a move makes too long is refused', async () => {
    await write(`/a/${'x'.repeat(1000)}`)
    const { status, body } = await fs('POST', '/_/move', { src_path: '/a', dst_path: `/${'y'.repeat(30)}` })
    expect([status, body.error]).toEqual([400, expect.stringContaining('1,024 bytes')])
    expect(await list('/a')).toHaveLength(1)
  })
})

describe('a bad body', () => {
  it.each([
    [{ content: 'a b=', encoding: 'base64' }, /^content: must be base64/],
    [{ content: 'YQ', encoding: 'base64' }, /^content: must be base64/],
    [{ content: 'a', encoding: 'utf-16' }, /^encoding: /],
    [{ content: 7 }, /^content: /],
    [{ content: 'a\0b' }, /content.*NUL/],
    [{ is_directory: 'yes' }, /^is_directory: /],
    [{ is_directory: true, content: 'a' }, /^content: must be left out for a directory/],
  ])('is refused: %j', async (body, sentence) => {
    expectError(await fs('POST', '/a', body), 400, sentence)
  })

  it('is refused in moves and copies', async () => {
    expectError(await fs('POST', '/_/move', { src_path: '/a', dst_path: '/a\u001bb' }), 400, /^dst_path: .*control/)
    expectError(await fs('GET', '/a%0Ab'), 400, /^path: .*control/)
    expectError(await fs('POST', '/_/move', { src_path: '/a' }), 400, /^dst_path: /)
    expectError(await fs('POST', '/_/copy', { src_path: '/a', dst_path: '/_b' }), 400, /^dst_path: .*_/)
    expectError(await fs('POST', '/_/stat', {}), 400, /^path: /)
  })
})

it('describes the root directory', async () => {
  expect((await fs('POST', '/_/stat', { path: '' })).body).toMatchObject({ path: '/', name: '/', is_directory: true })
  expect((await fs('GET', '')).body).toEqual({ data: [] })
})

it('finds nothing in a session that does not exist', async () => {
  session = unknownId('session')
  for (const [method, path, body] of [
    ['GET', '', undefined],
    ['GET', '/a', undefined],
    ['POST', '/a', {}],
    ['PUT', '/a', { content: '' }],
    ['DELETE', '/a', undefined],
    ['POST', '/_/stat', { path: '/' }],
    ['POST', '/_/move', { src_path: '/a', dst_path: '/b' }],
  ] as const) {
    expectError(await fs(method, path, body), 404, 'Session not found')
  }
})
