import { buffer } from 'node:stream/consumers'
import { type Entry, fromBufferPromise } from 'yauzl'
import { call, createSession, expectError } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
let session: string
beforeAll(async () => {
  api = await newOrganization()
})
beforeEach(async () => {
  session = await createSession(api)
})

type Sent = { body?: Uint8Array<ArrayBuffer> | string | FormData; headers?: Record<string, string> }

/** Sends bytes, or asks for them. The content type is what `headers` say, or none. */
async function fs(method: string, path: string, { body, headers = {} }: Sent = {}) {
  const url = `${api.url}/v1/sessions/${session}/fs${path}`
  const answer = await fetch(url, { method, headers: { ...api.headers, ...headers }, ...(body && { body }) })
  return { status: answer.status, headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) }
}
const writeJson = (path: string, body: object) => call(api, 'POST', `/v1/sessions/${session}/fs${path}`, body)
const BYTES = Buffer.from(Array.from({ length: 1_200_000 }, (_, index) => (index * 7) % 256))
const OCTETS = { 'Content-Type': 'application/octet-stream' }

describe('the bytes of a file', () => {
  it('are written as they are, with any content type but JSON, and read', async () => {
    const made = await fs('POST', '/a/b.bin', { body: BYTES, headers: OCTETS })
    expect([made.status, JSON.parse(`${made.bytes}`)]).toMatchObject([
      201,
      { path: '/a/b.bin', size_bytes: BYTES.length },
    ])
    expect((await fs('GET', '/a/b.bin?raw=true')).bytes.equals(BYTES)).toBe(true)
    for (const headers of [{ 'Content-Type': 'text/csv; charset=iso-8859-1' }, OCTETS, {}]) {
      const body = Buffer.from(`Zürich${Object.keys(headers)}`)
      expect((await fs('PUT', '/a/b.bin', { body, headers })).status).toBe(200)
      expect((await fs('GET', '/a/b.bin?raw=true')).bytes).toEqual(body)
    }
    expect((await call(api, 'GET', `/v1/sessions/${session}/fs/a/b.bin`)).body).toMatchObject({
      ...{ encoding: 'text', content: 'Zürich' },
    })
    expect((await fs('PUT', '/a/b.bin', { headers: OCTETS })).status).toBe(200)
    expect((await fs('GET', '/a/b.bin?raw=true')).bytes).toHaveLength(0)
    expect((await fs('PUT', '/missing', { body: BYTES, headers: OCTETS })).status).toBe(404)
    expect((await fs('POST', '/a/b.bin', { body: BYTES, headers: OCTETS })).status).toBe(409)
  })

  it('are at most 10 MiB, and no form or packed', async () => {
    const largest = Buffer.alloc(10 * 1024 * 1024, 'a')
    expect((await fs('POST', '/a', { body: largest, headers: OCTETS })).status).toBe(201)
    const larger = Buffer.concat([largest, Buffer.from('a')])
    expect((await fs('PUT', '/a', { body: larger, headers: OCTETS })).status).toBe(413)
    const chunked = new Blob([larger]).stream()
    const { status } = await fetch(`${api.url}/v1/sessions/${session}/fs/b`, {
      ...{ method: 'POST', body: chunked, headers: { ...api.headers, ...OCTETS }, duplex: 'half' },
    } as RequestInit)
    expect(status).toBe(413)
    const form = new FormData()
    form.set('file', new Blob(['a']))
    const refused = await fs('POST', '/c', { body: form })
    expect([refused.status, `${refused.bytes}`]).toEqual([415, expect.stringContaining('bytes of the file')])
    const packed = { ...OCTETS, 'Content-Encoding': 'gzip' }
    expect((await fs('POST', '/c', { body: BYTES, headers: packed })).status).toBe(415)
    expect((await fs('GET', '')).bytes.includes('"/a"')).toBe(true)
    expect((await fs('GET', '')).bytes.includes('"/c"')).toBe(false)
  })

  it('are written once with an Idempotency-Key', async () => {
    const keyed = (body: string) => fs('POST', '/a', { body, headers: { ...OCTETS, 'Idempotency-Key': 'bytes' } })
    const first = await keyed('one')
    expect(await keyed('one')).toMatchObject({ status: 201, bytes: first.bytes })
    expect((await keyed('two')).status).toBe(409)
    expect((await call(api, 'GET', `/v1/sessions/${session}/fs/a`)).body.content).toBe('one')
  })

  it('are given in ranges and by version, under the name and the type of the file', async () => {
    await fs('POST', '/a/report%22%0A.png'.replace('%0A', ''), { body: BYTES, headers: OCTETS })
    const path = '/a/report%22.png?raw=true'
    const { status, headers } = await fs('HEAD', path)
    expect([status, headers.get('content-type'), headers.get('content-length')]).toEqual([200, 'image/png', '1200000'])
    expect(headers.get('content-disposition')).toBe('inline; filename="report\\".png"')
    const etag = headers.get('etag') ?? ''
    expect((await fs('GET', path, { headers: { 'If-None-Match': etag } })).status).toBe(304)
    for (const [range, from, to] of [
      ['bytes=0-3', 0, 4],
      ['bytes=1100000-1100009', 1_100_000, 1_100_010],
      ['bytes=-5', 1_199_995, 1_200_000],
    ] as const) {
      const part = await fs('GET', path, { headers: { Range: range, 'If-Range': etag } })
      expect([part.status, part.bytes.equals(BYTES.subarray(from, to))]).toEqual([206, true])
    }
    expect((await fs('GET', path, { headers: { Range: 'bytes=1200000-' } })).status).toBe(416)
    await fs('PUT', '/a/report%22.png', { body: 'other', headers: OCTETS })
    const other = await fs('GET', path, { headers: { 'If-None-Match': etag } })
    expect([other.status, `${other.bytes}`]).toEqual([200, 'other'])
    const saved = await fs('GET', '/a/report%22.png?download=true')
    expect(saved.headers.get('content-disposition')).toMatch(/^attachment; /)
  })

  it.each([
    ['page.html', 'text/html; charset=utf-8'],
    ['picture.svg', 'image/svg+xml'],
    ['program.js', 'text/plain; charset=utf-8'],
    ['module.mjs', 'text/plain; charset=utf-8'],
    ['data.json', 'application/json; charset=utf-8'],
    ['Makefile', 'text/plain; charset=utf-8'],
  ])('of %s can run nothing here', async (name, type) => {
    await writeJson(`/${name}`, { content: '<script>alert(1)</script>' })
    const { headers } = await fs('GET', `/${name}?raw=1`)
    expect(headers.get('content-type')).toBe(type)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-security-policy')).toBe("sandbox; default-src 'none'")
    expect(headers.get('cache-control')).toBe('private, no-cache')
  })

  it('of text that is not UTF-8 claim no character set', async () => {
    await fs('POST', '/a.csv', { body: Buffer.from([0xff, 0xe9]), headers: OCTETS })
    await fs('POST', '/unknown', { body: Buffer.from([0xff, 0xe9]), headers: OCTETS })
    expect((await fs('GET', '/a.csv?raw=true')).headers.get('content-type')).toBe('text/csv')
    expect((await fs('GET', '/unknown?raw=true')).headers.get('content-type')).toBe('application/octet-stream')
  })

  it('cannot be read from a directory or a missing file', async () => {
    await writeJson('/a', { is_directory: true })
    const get = (path: string) => call(api, 'GET', `/v1/sessions/${session}/fs${path}`)
    expectError(await get('/a?raw=true'), 400, '/a is a directory, not a file')
    expectError(await get('/b?raw=true'), 404, 'File not found')
    expectError(await get('/b?raw=perhaps'), 400, /^raw: /)
  })
})

describe('the archive of a session', () => {
  /** Reads an archive with somebody else's reader, which checks sizes and checksums. */
  async function unzip(bytes: Buffer): Promise<[name: string, content: Buffer][]> {
    const zip = await fromBufferPromise(bytes, { validateEntrySizes: true })
    const files: [string, Buffer][] = []
    for await (const entry of zip.eachEntry() as AsyncIterable<Entry>) {
      const stream = await zip.openReadStreamPromise(entry)
      files.push([entry.fileName, await buffer(stream)])
    }
    return files
  }

  it('has all files and directories', async () => {
    await fs('POST', '/a/%C3%BC.bin', { body: BYTES, headers: OCTETS })
    await writeJson('/a/empty', {})
    await writeJson('/a/b/..%5C..%5Cx', { content: 'backslash' })
    for (const name of ['a.txt', 'b.txt', 'c.txt']) await writeJson(`/${name}`, { content: `${name} `.repeat(40_000) })
    await writeJson('/void', { is_directory: true })
    const { status, headers, bytes } = await fs('GET', '?archive=zip')
    expect([status, headers.get('content-type')]).toEqual([200, 'application/zip'])
    expect(headers.get('content-disposition')).toBe(`attachment; filename="${session}.zip"`)
    const files = (await unzip(bytes)).map(([name, content]) => [name, content.length])
    expect(files.sort()).toEqual([
      ...[
        ['a.txt', 240_000],
        ['a/', 0],
        ['a/b/', 0],
        ['a/b/.._.._x', 9],
        ['a/empty', 0],
        ['a/ü.bin', BYTES.length],
      ],
      ...[
        ['b.txt', 240_000],
        ['c.txt', 240_000],
        ['void/', 0],
      ],
    ])
    expect((await unzip(bytes)).find(([name]) => name === 'a/ü.bin')?.[1].equals(BYTES)).toBe(true)
  })

  it('has everything under a name of its own, also for a system that changes names', async () => {
    const paths = [
      'a:b.txt',
      'a_b.txt',
      'a%5Cb.txt',
      'Read',
      'READ',
      'd:/x',
      'd_/x',
      'D_/y',
      'f:',
      'f_/x',
      'n_ (2)',
      'n_',
      'n:',
    ]
    for (const path of paths) await writeJson(`/${path}`, { content: decodeURIComponent(path) })
    const files = await unzip((await fs('GET', '?archive=zip')).bytes)
    const names = files.map(([name]) => name.replace(/\/$/, '').toLowerCase())
    expect(new Set(names).size).toBe(names.length)
    const written = files.filter(([name]) => !name.endsWith('/'))
    expect(written.map(([, content]) => `${content}`).sort()).toEqual(paths.map(decodeURIComponent).sort())
    const nameOf = Object.fromEntries(written.map(([name, content]) => [`${content}`, name]))
    expect(nameOf).toMatchObject({ 'a:b.txt': 'a_b.txt', 'a_b.txt': 'a_b (3).txt', READ: 'READ', Read: 'Read (2)' })
    expect(nameOf['D_/y']?.replace(/\/y$/, '')).not.toBe(nameOf['d:/x']?.replace(/\/x$/, ''))
  })

  it('is there for an owner who has none while others take theirs as slowly as they like', async () => {
    const largest = Buffer.alloc(10 * 1024 * 1024, 'a')
    const slow = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const owner = await newOrganization()
        const path = `/v1/sessions/${await createSession(owner)}/fs`
        const headers = { ...owner.headers, ...OCTETS }
        await fetch(`${owner.url}${path}/a`, { method: 'POST', body: largest, headers })
        await call(owner, 'POST', `${path}/_/copy`, { src_path: '/a', dst_path: '/b' })
        return { owner, path: `${path}?archive=zip` }
      }),
    )
    // Nothing of these bodies is read.
    const begin = ({ owner, path }: (typeof slow)[number]) => fetch(`${owner.url}${path}`, { headers: owner.headers })
    const begun = await Promise.all(slow.flatMap((one) => Array.from({ length: 4 }, () => begin(one))))
    expect(begun.map(({ status }) => status)).toEqual(begun.map(() => 200))
    const [first] = slow
    expect(first && (await begin(first)).status).toBe(429)
    const { status, bytes } = await fs('GET', '?archive=zip')
    expect([status, await unzip(bytes)]).toEqual([200, []])
    const ends = await Promise.all(
      begun.map(
        ({ body }) =>
          body &&
          buffer(body).then(
            () => 'whole',
            () => 'cut',
          ),
      ),
    )
    expect(ends.filter((end) => end === 'cut')).toHaveLength(1)
  })

  it('is empty for a session without files, and refused in another format', async () => {
    expect(await unzip((await fs('GET', '?archive=zip')).bytes)).toEqual([])
    expect((await fs('HEAD', '?archive=zip')).status).toBe(200)
    expect((await fs('GET', '?archive=tar')).status).toBe(400)
  })
})
