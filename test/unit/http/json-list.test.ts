import { createServer, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import Koa from 'koa'
import { pino } from 'pino'
import { answerErrors } from '../../../api/http/errors.ts'
import { answerList, linesOf } from '../../../api/http/json-list.ts'
import { waitFor } from '../../support/http.ts'
import { exchange, head } from '../../support/raw.ts'

const STALLED_MS = 3000
const LINE = JSON.stringify('x'.repeat(100_000))
/** Rate at which a socket always makes progress but needs longer than STALLED_MS for a piece. */
const SLOW_BYTES_PER_SECOND = 20_000

type Lines = () => AsyncGenerator<string>

/** Serves a list and collects the log. */
async function serve(lines: Lines, more = {}, key = 'data') {
  const logged: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => logged.push(line) })
  const app = new Koa()
  app.silent = true
  app.use(answerErrors({ log, unavailability: () => undefined }))
  app.use((ctx) => {
    ctx.set('X-Set-Before', 'yes')
    return answerList(ctx as never, log, lines(), { key, more, stalledMs: STALLED_MS })
  })
  const server = createServer(app.callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = () => new Promise((resolve) => server.close(resolve))
  return { server, port, url: `http://127.0.0.1:${port}`, logged, close }
}

/** Creates an endless list that counts the lines taken. */
function createEndless() {
  const counts = { lines: 0, ended: false }
  async function* lines(): AsyncGenerator<string> {
    try {
      for (; ; counts.lines++) {
        yield LINE
        await sleep(5)
      }
    } finally {
      counts.ended = true
    }
  }
  return { counts, lines }
}

/** Returns a list that fails after `count` lines. */
const failingAfter = (count: number): Lines =>
  async function* lines() {
    for (let line = 0; line < count; line++) yield LINE
    throw new Error('the record is away')
  }

const ask = (url: string, options = {}): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request(url, { agent: false, ...options }, resolve)
      .on('error', reject)
      .end()
  })

/** Socket that accepts written data slowly. */
class SlowSocket extends Duplex {
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    setTimeout(done, (chunk.length / SLOW_BYTES_PER_SECOND) * 1000)
  }
  /** Does nothing, because the socket is never without progress for that long. */
  setTimeout(): this {
    return this
  }
}

describe('a list', () => {
  it.concurrent('has the key and the other fields that it is given', async () => {
    async function* lines() {
      yield '1'
      yield '2'
    }
    const { url, close } = await serve(lines, { text: 'ä"' }, 'files')
    const answer = await fetch(url)
    expect(await answer.json()).toEqual({ files: [1, 2], text: 'ä"' })
    await close()
  })

  it.concurrent('ends for a client that stops reading', async () => {
    const { counts, lines } = createEndless()
    const { port, close } = await serve(lines)
    const socket = connect(port, '127.0.0.1')
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
    // As long as the client reads, the answer may take longer than STALLED_MS.
    socket.on('data', () => {})
    await sleep(2 * STALLED_MS)
    expect(counts.ended).toBe(false)
    socket.pause()
    await waitFor(async () => counts.ended, 'the list to end')
    const taken = counts.lines
    await sleep(100)
    expect(counts.lines).toBe(taken)
    socket.resume()
    await closed
    await close()
  })

  it.concurrent('ends for a client that reads too slowly', async () => {
    const { counts, lines } = createEndless()
    const { server, close } = await serve(lines)
    const socket = new SlowSocket()
    server.emit('connection', socket)
    socket.push('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
    await waitFor(async () => counts.ended, 'the list to end')
    expect(socket.destroyed).toBe(true)
    await close()
  })

  it('ends with its client', async () => {
    const { counts, lines } = createEndless()
    const { url, logged, close } = await serve(lines)
    const answer = await ask(url)
    answer.destroy()
    await waitFor(async () => counts.ended, 'the list to end')
    expect(logged).toEqual([])
    await close()
  })

  it('is an error if it fails at first, and broken off if it fails later; both are logged once', async () => {
    const atFirst = await serve(failingAfter(0))
    const answer = await ask(atFirst.url)
    expect([answer.statusCode, await text(answer)]).toEqual([
      500,
      '{"error":"Internal server error","code":"internal"}',
    ])
    expect(atFirst.logged).toHaveLength(1)
    await atFirst.close()
    const later = await serve(failingAfter(3))
    await expect(ask(later.url).then(text)).rejects.toThrow('aborted')
    expect(later.logged).toHaveLength(1)
    await later.close()
  })

  it('leaves the connection and earlier headers alone, even for HEAD', async () => {
    let ended = 0
    async function* lines() {
      try {
        yield* ['1', '2']
      } finally {
        ended++
      }
    }
    const { url, close } = await serve(lines, { total: 2 })
    const keepAlive = { Connection: 'keep-alive' }
    const { status, headers, body } = await exchange(
      url,
      head('HEAD', '/', keepAlive),
      head('GET', '/', keepAlive),
      head('GET', '/'),
    )
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-set-before': 'yes',
      connection: 'keep-alive',
    })
    expect(body.match(/HTTP\/1.1 200 OK|\{.*\}/g)).toEqual(
      Array(2).fill(['HTTP/1.1 200 OK', '{"data":[1,2],"total":2}']).flat(),
    )
    expect(ended).toBe(3)
    await close()
  })

  it.each([
    ['without pages', []],
    ['with an empty page', [[]]],
    ['that ends with an empty page', [[1, 2], []]],
    ['of large lines', [['ä'.repeat(200_000), '€'.repeat(100_000)], ['😀'.repeat(100_000)]]],
  ])('%s is complete', async (_, pages) => {
    async function* read(): AsyncGenerator<unknown[]> {
      yield* pages
    }
    const { url, close } = await serve(() => linesOf(read()))
    expect(JSON.parse(await text(await ask(url)))).toEqual({ data: pages.flat() })
    await close()
  })
})
