import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import Koa from 'koa'
import { answerList } from '../../api/json-list.ts'
import { createLog } from '../../platform/log.ts'

const STALLED_MS = 2000

/** Serves a list without end, and counts the pages that were taken of it. */
async function serveEndless() {
  const counts = { pages: 0, ended: false }
  async function* pages(): AsyncGenerator<string[]> {
    try {
      for (; ; counts.pages++) {
        yield [JSON.stringify('x'.repeat(100_000))]
        await sleep(5)
      }
    } finally {
      counts.ended = true
    }
  }
  const app = new Koa()
  app.use((ctx) => answerList(ctx as never, createLog('silent', 'list'), pages(), { stalledMs: STALLED_MS }))
  app.silent = true
  const server = createServer(app.callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { counts, server, port: (server.address() as AddressInfo).port }
}

describe('a list', () => {
  it('ends for a client that takes nothing any more', async () => {
    const { counts, server, port } = await serveEndless()
    const socket = connect(port, '127.0.0.1')
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
    // As long as it takes what comes it may take longer than that.
    socket.on('data', () => {})
    await sleep(2 * STALLED_MS)
    expect(counts.ended).toBe(false)
    socket.pause()
    while (!counts.ended) await sleep(50)
    const { pages } = counts
    await sleep(100)
    expect(counts.pages).toBe(pages)
    socket.resume()
    await closed
    await new Promise((resolve) => server.close(resolve))
  })
})
