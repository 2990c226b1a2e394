import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import sharp from 'sharp'
import { newUuid } from '../../domain/kit/ids.ts'
import { type Answer, call, expectError, waitFor } from '../support/http.ts'
import { formOf, PIXEL } from '../support/pictures.ts'
import { animated, bomb, noise, picture, twoColours, withFrames } from '../support/pictures-by-sharp.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const upload = (bytes: Uint8Array, name?: string, type?: string, query = ''): Promise<Answer> =>
  call(api, 'POST', `/v1/images${query}`, formOf(bytes, name, type))

/** Gets a file with its bytes. */
async function get(path: string, headers: Record<string, string> = {}) {
  const answer = await fetch(`${api.url}/v1/images/${path}`, { headers: { ...api.headers, ...headers } })
  return { status: answer.status, headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) }
}

/** Returns the colour of a JPEG's pixel, as the channels that are bright. */
async function colourAt(jpeg: Buffer, left: number, top: number): Promise<string> {
  const { dominant } = await sharp(
    await sharp(jpeg).extract({ left, top, width: 4, height: 4 }).png().toBuffer(),
  ).stats()
  return (['r', 'g', 'b'] as const).filter((channel) => dominant[channel] > 128).join('')
}

type Kind = [
  what: string,
  type: string,
  make: () => Promise<Buffer>,
  size: [number, number],
  thumbnail: [number, number],
]
const kinds: Kind[] = [
  ['a PNG', 'image/png', () => picture(400, 300).png().toBuffer(), [400, 300], [200, 150]],
  [
    'a PNG of 16 bits',
    'image/png',
    () => picture(300, 400).toColourspace('rgb16').png().toBuffer(),
    [300, 400],
    [150, 200],
  ],
  ['an interlaced PNG', 'image/png', () => picture(50, 20).png({ progressive: true }).toBuffer(), [50, 20], [50, 20]],
  ['a JPEG', 'image/jpeg', () => picture(400, 300).jpeg().toBuffer(), [400, 300], [200, 150]],
  [
    'a JPEG for print',
    'image/jpeg',
    () => picture(400, 300).toColourspace('cmyk').jpeg().toBuffer(),
    [400, 300],
    [200, 150],
  ],
  [
    'a JPEG on its side',
    'image/jpeg',
    () => picture(400, 300).withMetadata({ orientation: 6 }).jpeg().toBuffer(),
    [300, 400],
    [150, 200],
  ],
  ['a GIF', 'image/gif', () => picture(10, 10).gif().toBuffer(), [10, 10], [10, 10]],
  ['an animated GIF', 'image/gif', () => animated('gif', 5), [16, 16], [16, 16]],
  ['a WebP', 'image/webp', () => picture(2000, 20).webp().toBuffer(), [2000, 20], [200, 2]],
  ['an animated WebP', 'image/webp', () => animated('webp', 5), [16, 16], [16, 16]],
]

describe('an image', () => {
  it.each(kinds)('can be %s', async (_, type, make, [width, height], thumbnailSize) => {
    const bytes = await make()
    const { status, body } = await upload(bytes, 'My picture.x', type)
    const info = { id: body.id, filename: 'My picture.x', content_type: type, size_bytes: bytes.length }
    expect({ status, body }).toEqual({ status: 201, body: { ...info, created_at: expect.any(String) } })
    const { data } = (await call(api, 'GET', '/v1/images?limit=1')).body
    expect(data).toEqual([{ ...body, metadata: { width, height } }])
    const original = await get(body.id)
    expect([original.headers.get('content-type'), original.bytes.equals(bytes)]).toEqual([type, true])
    const thumbnail = await get(`${body.id}/thumbnail`)
    const { format, ...size } = await sharp(thumbnail.bytes).metadata()
    expect([format, size.width, size.height]).toEqual(['jpeg', ...thumbnailSize])
  })

  it('is turned in its thumbnail as its orientation says', async () => {
    // 6: the right side is shown below.
    const bytes = await (await twoColours()).withMetadata({ orientation: 6 }).jpeg().toBuffer()
    const { bytes: thumbnail } = await get(`${(await upload(bytes)).body.id}/thumbnail`)
    expect([await colourAt(thumbnail, 50, 20), await colourAt(thumbnail, 50, 180)]).toEqual(['r', 'b'])
  })

  it.each(['gif', 'webp'] as const)('shows the first frame of an animated %s in its thumbnail', async (format) => {
    const { bytes } = await get(`${(await upload(await animated(format, 3))).body.id}/thumbnail`)
    expect(await colourAt(bytes, 8, 8)).toBe('r')
  })

  it('has white behind it in its thumbnail', async () => {
    const clear = sharp({ create: { width: 10, height: 10, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } } })
    const { bytes } = await get(`${(await upload(await clear.png().toBuffer())).body.id}/thumbnail`)
    expect(await colourAt(bytes, 2, 2)).toBe('rgb')
  })

  it('is served with what a browser needs to keep it, and cannot be taken for a page', async () => {
    const gif = Buffer.concat([await picture(4, 4).gif().toBuffer(), Buffer.from('<html><script>alert(1)</script>')])
    const { body } = await upload(gif, 'page.html', 'image/gif')
    for (const path of [body.id, `${body.id}/thumbnail`]) {
      const { status, headers } = await get(path)
      expect(status).toBe(200)
      expect(headers.get('content-type')).toBe(path === body.id ? 'image/gif' : 'image/jpeg')
      expect(headers.get('cache-control')).toBe('private, max-age=31536000, immutable')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('content-disposition')).toMatch(/^inline; filename=/)
      const again = await get(path, { 'If-None-Match': headers.get('etag') ?? '' })
      expect([again.status, again.bytes.length]).toEqual([304, 0])
      expect((await get(path, { 'If-None-Match': '"other"' })).status).toBe(200)
    }
  })

  it.each<[session: string, noted?: string]>([
    ['0193aaaa-bbbb-7ccc-8ddd-0123456789ab'],
    ['session_0193aaaabbbb7ccc8ddd0123456789ab'],
    ['sess_0193aaaabbbb7ccc8ddd0123456789ab'],
  ])('notes the session %s, which does not exist', async (session) => {
    const { status } = await upload(PIXEL, 'a.png', 'image/png', `?session_id=${session}`)
    const { data } = (await call(api, 'GET', '/v1/images?limit=1')).body
    expect([status, data[0].metadata.session_id]).toEqual([201, 'session_0193aaaabbbb7ccc8ddd0123456789ab'])
  })

  it.each(['', 'x', 'agent_0193aaaabbbb7ccc8ddd0123456789ab', '0193AAAA-bbbb-7ccc-8ddd-0123456789ab'])(
    'is refused with the session %j',
    async (session) => {
      expectError(await upload(PIXEL, 'a.png', 'image/png', `?session_id=${session}`), 400, /^session_id: must be /)
    },
  )

  it('is found by both forms of its id, until it is deleted', async () => {
    const { id } = (await upload(PIXEL)).body
    const prefixed = `img_${id.replaceAll('-', '')}`
    expect((await get(prefixed)).bytes).toEqual(PIXEL)
    expect((await call(api, 'DELETE', `/v1/images/${prefixed}`)).status).toBe(204)
    for (const path of [id, `${id}/thumbnail`, prefixed]) {
      expectError(await call(api, 'GET', `/v1/images/${path}`), 404, 'Image not found')
    }
    expectError(await call(api, 'DELETE', `/v1/images/${id}`), 404, 'Image not found')
    expect(await api.query('SELECT 1 FROM image_chunks WHERE image_id = $1', [id])).toEqual([])
  })

  it.each(['x', 'img_1', newUuid().toUpperCase(), `image_${'0'.repeat(32)}`])('has no id %s', async (id) => {
    expectError(await call(api, 'GET', `/v1/images/${id}`), 400, /^image_id: must be a UUID/)
  })
})

describe('the name of an image', () => {
  it.each([
    ['cat.png', 'cat.png'],
    ['../../etc/passwd', 'passwd'],
    ['C:\\pictures\\cat.png', 'cat.png'],
    ['a"b\r\nSet-Cookie: x.png', 'abSet-Cookie: x.png'],
    ['🐈‍⬛ größer.png', '🐈‍⬛ größer.png'],
    ['gnp.\u202ecat.png', 'gnp.cat.png'],
    [' .. ', 'image.png'],
    ['', 'image.png'],
    [`${'ä'.repeat(300)}.png`, `${'ä'.repeat(125)}.png`],
  ])('%j is kept as %j', async (name, kept) => {
    const { status, body } = await upload(PIXEL, name)
    expect([status, body.filename]).toEqual([201, kept])
    const disposition = (await get(body.id)).headers.get('content-disposition') ?? ''
    expect(disposition).toMatch(/^inline; filename="[^"\r\n]*"(; filename\*=UTF-8''[^ ]*)?$/)
    const encoded = /filename\*=UTF-8''(.*)$/.exec(disposition)?.[1]
    if (encoded !== undefined) expect(decodeURIComponent(encoded)).toBe(kept)
  })

  it('may be missing, as may the type, but contains no NUL', async () => {
    const send = (name: string) => {
      const part = `--b\r\nContent-Disposition: form-data; name="file"${name}\r\n\r\n`
      const body = Buffer.concat([Buffer.from(part), PIXEL, Buffer.from('\r\n--b--\r\n')])
      const headers = { ...api.headers, 'Content-Type': 'multipart/form-data; boundary=b' }
      return fetch(`${api.url}/v1/images`, { method: 'POST', headers, body })
    }
    expect(await (await send('')).json()).toMatchObject({ filename: 'image.png' })
    const refused = await send('; filename="a\0b.png"')
    expect([refused.status, await refused.json()]).toEqual([
      400,
      { error: expect.stringMatching(/^file: .*NUL/), code: 'invalid', field: 'file' },
    ])
  })
})

/** Expects that nothing is kept of what was refused. */
const expectNothingLeft = async () =>
  expect(
    await api.query('SELECT id FROM images WHERE organization_id = $1 AND completed_at IS NULL', [api.uuid]),
  ).toEqual([])

const cut = async (image: Promise<Buffer>, part: number) => {
  const bytes = await image
  return bytes.subarray(0, Math.floor(bytes.length * part))
}
const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>'
const UNREADABLE = /^file: is damaged or incomplete/
const NO_IMAGE = /^file: must be a PNG, JPEG, GIF or WebP image$/
const MIB = 1024 * 1024

const refused: [what: string, make: () => Promise<Uint8Array> | Uint8Array, sentence: RegExp, type?: string][] = [
  ['an empty file', () => Buffer.alloc(0), /^file: must not be empty$/],
  ['an SVG', () => Buffer.from(SVG), NO_IMAGE, 'image/svg+xml'],
  ['a page', () => Buffer.from('<html>GIF89a</html>'), NO_IMAGE, 'image/gif'],
  ['a page that begins like a GIF', () => Buffer.from('GIF89a<script>alert(1)</script>'), UNREADABLE],
  [
    'a PNG said to be a GIF',
    () => PIXEL,
    /^file: must be of the declared type image\/gif, but is image\/png$/,
    'image/gif',
  ],
  ['a PNG said to be a page', () => PIXEL, /of the declared type text\/html, but is/, 'text/html'],
  ['the beginning of a PNG', () => PIXEL.subarray(0, 20), UNREADABLE],
  ['half of a PNG', () => cut(noise(100, 100), 0.5), UNREADABLE],
  ['half of a JPEG', () => cut(picture(400, 300).jpeg().toBuffer(), 0.5), UNREADABLE],
  ['nearly all of a JPEG', () => cut(picture(400, 300).jpeg().toBuffer(), 0.99), UNREADABLE],
  ['half of a GIF', () => cut(picture(400, 300).gif().toBuffer(), 0.5), UNREADABLE],
  ['half of a WebP', () => cut(picture(400, 300).webp().toBuffer(), 0.5), UNREADABLE],
  ['nearly all of an animated WebP', () => cut(animated('webp', 9), 0.95), UNREADABLE],
  ['a bomb', bomb, /^file: must have at most 50 megapixels, but has 30000 × 30000 pixels$/],
  ['a JPEG of a hundred and one scans', () => withScans(101), /^file: must have at most 100 scans$/],
  ['a thousand and one frames', () => animated('gif', 1001, 2), /^file: must have at most 1000 frames$/],
  ['a WebP of 200,000 frames', () => withFrames(200_000), /^file: must have at most 1000 frames$/],
  [
    '20 MiB and a byte',
    () => Buffer.concat([PIXEL, Buffer.alloc(20 * MIB + 1 - PIXEL.length)]),
    /^file: must be at most 20971520 bytes$/,
  ],
]

/** Makes a JPEG with `count` more scans. They repeat its last one, so the picture stays the same. */
async function withScans(count: number): Promise<Buffer> {
  const jpeg = await picture(40, 30).jpeg({ progressive: true }).toBuffer()
  const lastScan = jpeg.lastIndexOf(Buffer.from([0xff, 0xda]))
  const scan = jpeg.subarray(lastScan, -2)
  return Buffer.concat([jpeg.subarray(0, -2), ...Array<Buffer>(count).fill(scan), jpeg.subarray(-2)])
}

describe('an upload', () => {
  it.each(refused)('is refused when it is %s', async (...[, make, sentence, type]) => {
    expectError(await upload(await make(), 'a.png', type), 400, sentence)
    await expectNothingLeft()
  })

  it('takes 20 MiB, and a thousand frames', async () => {
    const largest = Buffer.concat([PIXEL, Buffer.alloc(20 * MIB - PIXEL.length)])
    const { status, body } = await upload(largest)
    expect([status, body.size_bytes]).toEqual([201, 20 * MIB])
    expect((await get(body.id)).bytes.equals(largest)).toBe(true)
    expect((await upload(await withFrames(1000))).status).toBe(201)
  })

  it.each<[string, (form: FormData) => void, RegExp]>([
    [
      'two files',
      (form) => form.append('file', new File([new Uint8Array(PIXEL)], 'b.png')),
      /^file: must be given once$/,
    ],
    ['no file', (form) => form.delete('file'), /^file: is required$|malformed/],
    [
      'a file in another field',
      (form) => form.set('image', new File([new Uint8Array(PIXEL)], 'b.png')),
      /^image: must not be a file/,
    ],
  ])('is refused with %s', async (_, change, sentence) => {
    const form = formOf(PIXEL)
    change(form)
    expectError(await call(api, 'POST', '/v1/images', form), 400, sentence)
    await expectNothingLeft()
  })

  it('that breaks off leaves nothing', async () => {
    const stop = new AbortController()
    const image = await noise(1000, 1000)
    async function* body() {
      yield Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="broken.png"\r\n\r\n')
      yield image.subarray(0, MIB)
      const select = 'SELECT id FROM images WHERE organization_id = $1 AND completed_at IS NULL'
      await waitFor(async () => (await api.query(select, [api.uuid])).length === 1, 'the upload to be stored')
      // Not to be seen before it is complete.
      expect((await call(api, 'GET', '/v1/images?limit=1')).body.data[0]?.filename).not.toBe('broken.png')
      stop.abort()
      yield image.subarray(MIB)
    }
    const headers = { ...api.headers, 'Content-Type': 'multipart/form-data; boundary=b' }
    const request = { method: 'POST', headers, body: ReadableStream.from(body()), duplex: 'half', signal: stop.signal }
    await expect(fetch(`${api.url}/v1/images`, request as RequestInit)).rejects.toThrow()
    const select = 'SELECT id FROM images WHERE organization_id = $1 AND completed_at IS NULL'
    await waitFor(async () => (await api.query(select, [api.uuid])).length === 0, 'the upload to be removed')
  })

  it('without an end is refused at its limit', async () => {
    const headers = { ...api.headers, 'Content-Type': 'multipart/form-data; boundary=b' }
    const request = httpRequest(`${api.url}/v1/images`, { method: 'POST', headers })
    const answered = once(request, 'response')
    // The connection may be closed while it is still written to.
    request.on('error', () => {})
    request.write('--b\r\nContent-Disposition: form-data; name="file"; filename="endless.png"\r\n\r\n')
    request.write(PIXEL)
    let sentBytes = 0
    const isOver = answered.then(() => 'answered')
    while (sentBytes < 200 * MIB) {
      sentBytes += MIB
      const isReady = request.write(Buffer.alloc(MIB)) || once(request, 'drain')
      if ((await Promise.race([isOver, isReady])) === 'answered') break
    }
    const [answer] = await answered
    expect(answer.statusCode).toBe(400)
    expect(sentBytes).toBeLessThan(100 * MIB)
    request.destroy()
    await expectNothingLeft()
  })

  it('that is repeated with its Idempotency-Key keeps the bytes of one', async () => {
    const own = await newOrganization()
    const headers = { 'Idempotency-Key': newUuid() }
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => call(own, 'POST', '/v1/images', formOf(PIXEL), headers)),
    )
    answers.push(await call(own, 'POST', '/v1/images', formOf(PIXEL), headers))
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.id}`)).size).toBe(1)
    const kept = await own.query(
      'SELECT id FROM images JOIN image_chunks ON image_id = id WHERE organization_id = $1',
      [own.uuid],
    )
    expect(kept).toEqual([{ id: answers[0]?.body.id }])
    expectError(await call(own, 'POST', '/v1/images', formOf(PIXEL, 'other.png'), headers), 409, /^Idempotency-Key: /)
  })
})

describe('a range of an image', () => {
  let bytes: Buffer
  let id: string
  beforeAll(async () => {
    bytes = await noise(600, 500)
    id = (await upload(bytes)).body.id
  })
  const CHUNK = 256 * 1024

  it.each<[range: string, slice: [number, number?]]>([
    ['bytes=0-0', [0, 1]],
    ['bytes=100-199', [100, 200]],
    [`bytes=${CHUNK - 1}-${CHUNK}`, [CHUNK - 1, CHUNK + 1]],
    [`bytes=${CHUNK}-${2 * CHUNK - 1}`, [CHUNK, 2 * CHUNK]],
    [`bytes=${CHUNK - 5}-`, [CHUNK - 5]],
    ['bytes=-7', [-7]],
    ['bytes=5-99999999', [5]],
  ])('is what %s says', async (range, [from, to]) => {
    const part = await get(id, { Range: range })
    expect([part.status, part.bytes.equals(bytes.subarray(from, to))]).toEqual([206, true])
  })

  it.each<[range: string, headers?: Record<string, string>]>([
    ['bytes=200-100'],
    ['bytes=0-1,5-6'],
    [`bytes=${Array.from({ length: 500 }, (_, at) => `${at}-${at}`).join()}`],
    ['lines=1-2'],
    ['bytes=0-9', { 'If-Range': '"another"' }],
  ])('is the whole for another request: %#', async (...[range, headers]) => {
    const { status, bytes: all } = await get(id, { Range: range, ...headers })
    expect([status, all.equals(bytes)]).toEqual([200, true])
  })

  it.each(['bytes=99999999-', 'bytes=-0'])('is refused beyond the end: %s', async (range) => {
    const { status, headers } = await get(id, { Range: range })
    expect([status, headers.get('content-range')]).toEqual([416, `bytes */${bytes.length}`])
  })

  it('is given for the right version', async () => {
    const version = (await get(id)).headers.get('etag') ?? ''
    expect((await get(id, { Range: 'bytes=0-9', 'If-Range': version })).bytes.length).toBe(10)
  })
})

describe('the list of images', () => {
  it('is newest first, 50 at a time unless more are requested, and 100 at most', async () => {
    const own = await newOrganization()
    const ids: string[] = []
    for (let at = 0; at < 3; at++) ids.unshift((await call(own, 'POST', '/v1/images', formOf(PIXEL))).body.id)
    await own.query(
      `INSERT INTO images (id, organization_id, filename, content_type, size_bytes, width, height, completed_at)
       SELECT gen_random_uuid(), $1, 'old', 'image/png', 1, 1, 1, now() FROM generate_series(1, 120)`,
      [own.uuid],
    )
    const list = async (query: string) => (await call(own, 'GET', `/v1/images${query}`)).body.data
    const all = [...(await list('?limit=100')), ...(await list('?limit=100&offset=100'))].map(({ id }) => id)
    expect(all).toEqual([...new Set(all)].sort().reverse())
    expect(ids.filter((id) => all.includes(id))).toEqual(ids)
    const lengths = ['', '?limit=1000', '?offset=120', '?offset=123'].map(async (query) => (await list(query)).length)
    expect(await Promise.all(lengths)).toEqual([50, 100, 3, 0])
    for (const query of ['?limit=-1', '?limit=0', '?offset=x'])
      expectError(await call(own, 'GET', `/v1/images${query}`), 400, /whole number/)
  })
})
