import type { RequestListener } from 'node:http'
import { pino } from 'pino'
import sharp from 'sharp'
import type { ContentPart, Message } from '../../../contract/messages.ts'
import { createImageCache } from '../../../domain/conversation/image-cache.ts'
import { loadImages } from '../../../domain/conversation/images.ts'
import { createImageLoads, type ImageReader } from '../../../domain/conversation/load-image.ts'
import { startWebServer, type WebServer } from '../lib/outgoing/web-server.ts'
import { messageOf } from '../llm/ask.ts'

const MiB = 1024 * 1024
/** One red pixel. What follows the end of a PNG is ignored, so it can be made as large as is needed. */
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const image = (sizeBytes = 100) => Buffer.concat([PIXEL, Buffer.alloc(sizeBytes)], sizeBytes)
/** Size of an image that is sent unchanged. Eight of them fit into a call. */
const LARGE = 3.9 * 1000 * 1000
const link = (url: string): ContentPart => ({ type: 'image', url })
const text = (words: string): ContentPart => ({ type: 'text', text: words })
const data = (bytes: Buffer, mediaType = 'image/png'): ContentPart => ({
  type: 'image',
  base64: bytes.toString('base64'),
  media_type: mediaType,
})
const missing = (reason: string) => text(`[image not available: ${reason}]`)

let routes: Record<string, RequestListener> = {}
let server: WebServer
let now = 0
let jpeg: Buffer

beforeAll(async () => {
  jpeg = await sharp(PIXEL).jpeg().toBuffer()
  server = await startWebServer((request, response) => routes[request.url ?? '']?.(request, response))
})
afterAll(() => server.stop())
beforeEach(() => {
  server.requests.length = 0
  routes = { '/a.png': (_, response) => response.end(image()) }
  jest.spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => {
  jest.restoreAllMocks()
})

const depsOf = (allowPrivateNetwork = true) => ({
  outgoing: { allowPrivateNetwork },
  log: pino({ enabled: false }),
  owners: { ownerOf: async (id: string) => id },
  images: createImageCache(),
  imageLoads: createImageLoads(),
})

const never = new AbortController().signal
const unused = () => Promise.reject(new Error('No uploaded image was named.'))
const readerOf = (organizationId = 'org'): ImageReader => ({
  organizationId,
  maxEdge: 2048,
  existing: unused,
  read: unused,
})
const load = (messages: Message[], deps = depsOf()) => loadImages(deps, readerOf(), messages, never)

/** Loads the images of one user message, and returns its content. */
async function contentOf(parts: ContentPart[], deps = depsOf()): Promise<ContentPart[] | undefined> {
  const [message] = await load([messageOf('user', ...parts)], deps)
  return message?.content
}

describe('images by address', () => {
  it('become data, in user messages and tool results, whatever type is declared', async () => {
    routes['/b'] = (_, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(jpeg)
    const messages = [
      messageOf('user', text('Look'), link(`${server.url}/a.png`), text('!')),
      messageOf('agent', link(`${server.url}/a.png`)),
      messageOf('tool_result', { type: 'tool_result', tool_call_id: 'c', result: 1 }, link(`${server.url}/b`)),
    ]
    const before = structuredClone(messages)
    const loaded = await load(messages)
    expect(loaded.map(({ content }) => content)).toEqual([
      [text('Look'), data(image()), text('!')],
      [link(`${server.url}/a.png`)],
      [{ type: 'tool_result', tool_call_id: 'c', result: 1 }, data(jpeg, 'image/jpeg')],
    ])
    expect(loaded[1]).toBe(messages[1])
    expect(messages).toEqual(before)
  })

  it('may be data URLs, which are read without a request', async () => {
    expect(
      await contentOf(
        [
          link(`data:image/png;base64,${jpeg.toString('base64')}`),
          link(`DATA:;charset=utf-8 ;BASE64,${image().toString('base64')}`),
          link('data:image/png,abc'),
          link('data:image/png;base64'),
          link(`data:image/png;base64,${Buffer.from('<html>').toString('base64')}`),
        ],
        depsOf(false),
      ),
    ).toEqual([
      data(jpeg, 'image/jpeg'),
      data(image()),
      missing('Its data is not base64.'),
      missing('Its data is not base64.'),
      missing('It is not a PNG, JPEG, GIF or WebP image.'),
    ])
    const sized = await Promise.all(
      [20 * MiB, 20 * MiB + 1].map((size) => contentOf([link(`data:;base64,${image(size).toString('base64')}`)])),
    )
    expect(sized.map((content) => JSON.stringify(content).slice(0, 90))).toEqual([
      expect.stringContaining('"base64":'),
      expect.stringContaining('It is larger than 20 MiB.'),
    ])
  })

  it('are left alone when they have data, and nothing is copied without addresses', async () => {
    const messages = [
      messageOf('user', text('Hi'), { type: 'image', base64: 'AA==', url: `${server.url}/a.png` }),
      messageOf('user', { type: 'image', url: null }),
      messageOf('agent', link(`${server.url}/a.png`)),
    ]
    expect(await load(messages)).toBe(messages)
    expect(server.requests).toHaveLength(0)
  })

  it('are fetched once when they occur twice', async () => {
    const url = `${server.url}/a.png`
    expect(await contentOf([link(url), link(url)])).toEqual([data(image()), data(image())])
    expect(server.requests).toHaveLength(1)
  })

  it('are fetched four at a time', async () => {
    const open: (() => void)[] = []
    let most = 0
    const urls = Array.from({ length: 10 }, (_, index) => `/${index}.png`)
    for (const url of urls) {
      routes[url] = (_, response) => {
        open.push(() => response.end(image()))
        most = Math.max(most, open.length)
        // Answered only when as many are open as there will be.
        if (open.length === 4 || server.requests.length === urls.length) for (const answer of open.splice(0)) answer()
      }
    }
    const content = await contentOf(urls.map((url) => link(server.url + url)))
    expect(content).toEqual(urls.map(() => data(image())))
    expect(most).toBe(4)
  })
})

describe('an image that cannot be had', () => {
  it.each<[string, RequestListener, string]>([
    ['is missing', (_, response) => response.writeHead(404).end(image()), 'Its server answered 404.'],
    [
      'is a page',
      (_, response) => response.writeHead(200, { 'content-type': 'image/png' }).end('<html>'),
      'It is not a PNG, JPEG, GIF or WebP image.',
    ],
    ['is empty', (_, response) => response.end(), 'It is not a PNG, JPEG, GIF or WebP image.'],
    ['is cut off', (_, response) => response.end(PIXEL.subarray(0, 50)), 'It could not be decoded.'],
    ['is too large', (_, response) => response.end(image(20 * MiB + 1)), 'It is larger than 20 MiB.'],
    [
      'breaks off',
      (_, response) => response.writeHead(200, { 'content-length': '100' }).write(PIXEL, () => response.destroy()),
      'The answer broke off or could not be unpacked.',
    ],
    [
      'is elsewhere',
      (_, response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
      'Only http and https addresses are called.',
    ],
  ])('because it %s becomes a text', async (_, route, reason) => {
    routes['/bad'] = route
    expect(await contentOf([link(`${server.url}/bad`), link(`${server.url}/a.png`)])).toEqual([
      missing(reason),
      data(image()),
    ])
  })

  it.each([
    [
      'http://127.0.0.1:PORT/a.png',
      '127.0.0.1 is not on the public internet; other addresses are called only if ALLOWED_PRIVATE_HOSTS lists them or ALLOW_PRIVATE_NETWORK is true.',
    ],
    [
      'http://localhost:PORT/a.png',
      'localhost is not on the public internet; other addresses are called only if ALLOWED_PRIVATE_HOSTS lists them or ALLOW_PRIVATE_NETWORK is true.',
    ],
    ['file:///etc/passwd', 'Only http and https addresses are called.'],
    ['a.png', 'The address is not a valid URL.'],
  ])('because the service may not call %s becomes a text', async (url, reason) => {
    expect(await contentOf([link(url.replace('PORT', `${server.port}`))], depsOf(false))).toEqual([missing(reason)])
    expect(server.requests).toHaveLength(0)
  })

  it('fails the call only when the call is aborted', async () => {
    const caller = new AbortController()
    const deps = depsOf()
    routes['/slow'] = () => caller.abort(new Error('cancelled'))
    const messages = [messageOf('user', link(`${server.url}/slow`))]
    await expect(loadImages(deps, readerOf(), messages, caller.signal)).rejects.toThrow('cancelled')
    expect(deps.images.get('org', `2048 url ${server.url}/slow`)).toBeUndefined()
  })
})

it('lets in the newest images that fit together, and names the others', async () => {
  const urls = Array.from({ length: 24 }, (_, index) => `/${index}.png`)
  for (const url of urls) routes[url] = (_, response) => response.end(image(url === '/12.png' ? 100 : LARGE))
  const loaded = await load([
    messageOf('user', ...urls.slice(0, 12).map((url) => link(server.url + url))),
    messageOf('user', ...urls.slice(12).map((url) => link(server.url + url))),
  ])
  const parts = loaded.flatMap(({ content }) => content)
  expect(parts.map(({ type }) => type)).toEqual([...Array(16).fill('text'), ...Array(8).fill('image')])
  expect(parts[0]).toEqual(missing('The images of this conversation are too many or too large together.'))
  // Nine large images and the small one reach the limit; three more may have been begun by then.
  expect(server.requests.length).toBeLessThanOrEqual(13)
})

it('counts the images that have data already', async () => {
  const kept = Array.from({ length: 6 }, () => data(image(LARGE)))
  const links = Array.from({ length: 3 }, (_, index) => link(`${server.url}/large.png?${index}`))
  for (const [index] of links.entries()) routes[`/large.png?${index}`] = (_, response) => response.end(image(LARGE))
  const content = await contentOf([...links, ...kept])
  expect(content?.map(({ type }) => type)).toEqual(['text', 'image', 'image', ...Array(6).fill('image')])
})

it('begins no image after a minute', async () => {
  const urls = Array.from({ length: 9 }, (_, index) => `/${index}.png`)
  for (const url of urls) {
    routes[url] = (_, response) => {
      now += 20_000
      response.end(image())
    }
  }
  const content = await contentOf(urls.map((url) => link(server.url + url)))
  expect(content?.[8]).toEqual(data(image()))
  expect(content?.[0]).toEqual(missing('The images of this conversation are too many or too large together.'))
})

describe('the cache', () => {
  const fetched = async (deps: ReturnType<typeof depsOf>, url: string, organizationId = 'org') => {
    const before = server.requests.length
    await loadImages(deps, readerOf(organizationId), [messageOf('user', link(server.url + url))], never)
    return server.requests.length > before
  }

  it('keeps images for ten minutes and failures for half a minute, per organization', async () => {
    const deps = depsOf()
    routes['/gone'] = (_, response) => response.writeHead(410).end()
    expect([await fetched(deps, '/a.png'), await fetched(deps, '/gone')]).toEqual([true, true])
    expect([await fetched(deps, '/a.png'), await fetched(deps, '/gone')]).toEqual([false, false])
    expect(await fetched(deps, '/a.png', 'another')).toBe(true)
    now += 30_000
    expect([await fetched(deps, '/a.png'), await fetched(deps, '/gone')]).toEqual([false, true])
    now += 9.5 * 60_000
    expect(await fetched(deps, '/a.png')).toBe(true)
  })

  it('forgets what was not used for the longest time beyond 64 MiB', () => {
    const cache = createImageCache()
    const result = { base64: 'a'.repeat(10 * MiB), mediaType: 'image/png' as const, sizeBytes: 7 }
    for (const url of ['1', '2', '3', '4', '5', '6']) cache.set('org', url, result)
    expect(cache.get('org', '1')).toBe(result)
    cache.set('org', '7', result)
    cache.set('org', '7', result)
    expect(['1', '2', '3', '7'].map((url) => cache.get('org', url) === result)).toEqual([true, false, true, true])
  })

  it('does not keep failures without limit', () => {
    const cache = createImageCache()
    const count = 65 * 1024
    for (let index = 0; index <= count; index++) cache.set('org', `${index}`, { problem: 'gone' })
    expect([cache.get('org', '0'), cache.get('org', `${count}`)]).toEqual([undefined, { problem: 'gone' }])
  })
})
