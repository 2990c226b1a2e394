import type { RequestListener } from 'node:http'
import { ToolError } from '../../../domain/tools/capabilities/capability.ts'
import { convertWebPage, WebPageError } from '../../../domain/tools/capabilities/web-page/convert.ts'
import { createWebPageThreads } from '../../../domain/tools/capabilities/web-page/threads.ts'
import { watchEventLoop } from '../../support/event-loop.ts'
import { startWebServer, type WebServer } from '../lib/outgoing/web-server.ts'
import { runTool } from './run-tool.ts'

const PAGE = `<!doctype html><html><head><title> A
  page </title><style>p { color: red }</style><script>throw new Error('run')</script></head>
<body><nav>Menu</nav><svg><title>Icon</title></svg><h1>Heading</h1>
<p>Some <b>bold</b> text, a <a href="/there?a=(1)">link</a> and a <a href="javascript:steal()">trap</a>.</p>
<ul><li>one<li>two</ul><img src="cat.png" alt="A cat"><img src="data:image/png;base64,AAAA" alt="Dot">
<pre><code>x = 1</code></pre></body></html>`

const answer =
  (contentType: string | undefined, body: string | Buffer, status = 200): RequestListener =>
  (_, response) =>
    response.writeHead(status, contentType === undefined ? {} : { 'content-type': contentType }).end(body)

const routes: Record<string, RequestListener> = {
  '/page': answer('text/html; charset=utf-8', PAGE),
  '/moved': (_, response) => response.writeHead(301, { location: '/page' }).end(),
  '/json': answer('application/json', '{"a": [1, 2]}'),
  '/problem': answer('application/problem+json; charset=UTF-8', '{"a":1}', 422),
  '/feed': answer('application/rss+xml', '<rss/>'),
  '/text': answer('Text/Plain', 'as  it\n is'),
  '/missing': answer('text/html', '<h1>Not here</h1>', 404),
  '/empty': answer(undefined, '', 204),
  '/image': answer('image/png', Buffer.from([1, 2, 3])),
  '/untyped': answer(undefined, 'x', 500),
  '/latin': answer('text/plain; charset="ISO-8859-1"', Buffer.from('caf\xe9', 'latin1')),
  '/meta': answer('text/html', Buffer.from('<meta charset=windows-1251><p>\xcf\xf0\xe8', 'latin1')),
  '/odd-charset': answer('text/plain; charset=klingon', 'é'),
  '/nul': answer('text/plain', 'a\0b'),
  '/long': answer('text/plain', `${'a'.repeat(99_999)}🦉`),
  '/huge': answer('text/plain', 'a'.repeat(6_000_000)),
  '/long-page': answer('text/html', `<p>${'word '.repeat(30_000)}`),
  '/hostile': answer('text/html', '<b>'.repeat(1_000_000)),
  '/silent': () => {},
}

const threads = createWebPageThreads()
let server: WebServer
beforeAll(async () => {
  server = await startWebServer((request, response) => {
    routes[request.url ?? '']?.(request, response)
  })
})
afterAll(() => server.stop())

type Page = { url: string; status: number; content_type: string; title?: string; content: string; truncated: boolean }
const fetchPage = async (path: string, options: object = {}): Promise<Page> =>
  (await runTool('web_fetch', { url: server.url + path }, { allowPrivateNetwork: true, ...options })) as Page

describe('web_fetch', () => {
  it('returns a web page as Markdown with absolute URLs, without scripts and the like', async () => {
    expect(await fetchPage('/page')).toEqual({
      url: `${server.url}/page`,
      status: 200,
      content_type: 'text/html; charset=utf-8',
      title: 'A page',
      content: [
        '# Heading',
        `Some **bold** text, a [link](${server.url}/there?a=%281%29) and a trap.`,
        '-   one\n-   two',
        `![A cat](${server.url}/cat.png)Dot`,
        '```\nx = 1\n```',
      ].join('\n\n'),
      truncated: false,
    })
  })

  it('returns the URL at which the redirects ended', async () => {
    expect(await fetchPage('/moved')).toMatchObject({ url: `${server.url}/page`, status: 200, title: 'A page' })
  })

  it.each([
    ['/json', 200, '{"a": [1, 2]}'],
    ['/problem', 422, '{"a":1}'],
    ['/feed', 200, '<rss/>'],
    ['/text', 200, 'as  it\n is'],
    ['/empty', 204, ''],
  ])('returns text unchanged: %s', async (path, status, content) => {
    const page = await fetchPage(path)
    expect(page).toMatchObject({ status, content, truncated: false })
    expect(page).not.toHaveProperty('title')
  })

  it('returns the refusal of a server, which may say what to do', async () => {
    expect(await fetchPage('/missing')).toMatchObject({ status: 404, content: '# Not here' })
  })

  it('reads the character set of the header, then of the page, else UTF-8', async () => {
    expect((await fetchPage('/latin')).content).toBe('café')
    expect((await fetchPage('/meta')).content).toBe('При')
    expect((await fetchPage('/odd-charset')).content).toBe('é')
  })

  it('returns nothing that cannot be stored', async () => {
    expect((await fetchPage('/nul')).content).toBe('a\ufffdb')
    expect(await fetchPage('/long')).toMatchObject({ content: `${'a'.repeat(99_999)}\ufffd`, truncated: true })
  })

  it('returns the beginning of a long page', async () => {
    for (const path of ['/huge', '/long-page']) {
      const { content, truncated } = await fetchPage(path)
      expect([content.length, truncated]).toEqual([100_000, true])
    }
  })

  it('sends the key of the call, which no call of another session has', async () => {
    await fetchPage('/text', { idempotencyKey: 'turn_1:2:3' })
    expect(server.requests.at(-1)?.headers).toMatchObject({
      'idempotency-key': 'turn_1:2:3',
      'user-agent': expect.stringContaining('agent-session-service'),
    })
  })

  it.each([
    ['/image', 'The answer (status 200) has the content type image/png; only text'],
    ['/untyped', 'The answer (status 500) has no content type'],
    ['/hostile', 'The answer cannot be read: the page'],
  ])('reports to the model what it cannot read: %s', async (path, sentence) => {
    const failure = fetchPage(path)
    await expect(failure).rejects.toBeInstanceOf(ToolError)
    await expect(failure).rejects.toThrow(sentence)
  })

  it.each([
    ['a private address', 'http://127.0.0.1:1/', 'not on the public internet'],
    ['the metadata of a cloud', 'http://169.254.169.254/latest/meta-data', 'metadata service'],
    ['another protocol', 'file:///etc/passwd', 'Only http and https'],
    ['no address', 'the news', 'not a valid URL'],
  ])('reports to the model that it does not fetch %s', async (_, url, sentence) => {
    const failure = runTool('web_fetch', { url })
    await expect(failure).rejects.toBeInstanceOf(ToolError)
    await expect(failure).rejects.toThrow(sentence)
  })

  it('stops when the turn is cancelled', async () => {
    const caller = new AbortController()
    const fetching = fetchPage('/silent', { signal: caller.signal })
    setTimeout(() => caller.abort(new Error('cancelled')), 100)
    await expect(fetching).rejects.toThrow('cancelled')
  })
})

describe('converting a page', () => {
  const page = (html: string) => ({ html, url: 'http://example.com/', maxCharacters: 100 })
  const never = new AbortController().signal

  it('does not block the event loop, and ends in time', async () => {
    const loop = watchEventLoop()
    const converting = convertWebPage(threads, page('<div>'.repeat(1_000_000)), never, 1000)
    await expect(converting).rejects.toThrow(new WebPageError('the page takes too long to convert'))
    expect(loop.stop().busyMs).toBeLessThan(2000)
  })

  it('ends when it is aborted, running or waiting', async () => {
    const caller = new AbortController()
    const converting = Array.from({ length: 40 }, () =>
      convertWebPage(threads, page('<div>'.repeat(500_000)), caller.signal),
    )
    setTimeout(() => caller.abort(new Error('cancelled')), 200)
    const ends = await Promise.allSettled(converting)
    expect(ends.map((end) => (end.status === 'rejected' ? end.reason.message : 'done'))).toEqual(
      Array(40).fill('cancelled'),
    )
    expect((await convertWebPage(threads, page('<p>after'), never)).markdown).toBe('after')
  })

  it('works for many at once', async () => {
    const pages = await Promise.all(
      Array.from({ length: 12 }, (_, index) => convertWebPage(threads, page(`<p>${index}`), never)),
    )
    expect(pages.map(({ markdown }) => markdown)).toEqual(Array.from({ length: 12 }, (_, index) => `${index}`))
  })
})
