import { createServer, type Server, type ServerResponse } from 'node:http'
import type { Browser, Page } from 'playwright-core'
import { startBrowser } from '../dev/chromium.ts'
import type { RunningServices } from '../dev/services/index.ts'
import { spawnApp } from './app.ts'
import { benchLongSessions } from './console-long.ts'
import { benchStream, type Event, type Stream } from './console-stream.ts'
import { goal, print } from './report.ts'
import { percentile } from './statistics.ts'

const ROUNDS = 10
const MAX_FIRST_VIEW_MS = 1000
const SLOW_ROUNDS = 5
/** A slow line: 1.6 Mbit/s and 150 ms there and back. */
const SLOW = { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 200_000 }
const MAX_SLOW_VIEW_MS = 1500
const EVENTS_PER_SECOND = 100
const SECONDS = 5
const MIN_FRAMES = 0.95

/**
 * Times the first view of the console in a new browser, beside a page with one line of script. Then counts the frames of
 * a session whose stream brings 100 events a second, and of the same page at rest, and the cost of a long stream. Then
 * opens long sessions and texts.
 * Prints all results and the goals.
 */
export async function benchConsole(services: RunningServices, [port, proxyPort]: [number, number]): Promise<boolean> {
  const app = await spawnApp(services, port)
  const url = `http://127.0.0.1:${port}`
  const browser = await startBrowser()
  const proxy = await startProxy(url, proxyPort)
  const front = `http://127.0.0.1:${proxyPort}`
  try {
    await timeView(browser, `${front}/console`)
    const [console, floor]: [number[], number[]] = [[], []]
    for (let round = 0; round < ROUNDS; round++) {
      console.push(await timeView(browser, `${front}/console`))
      floor.push(await timeView(browser, `${front}/floor`))
    }
    const [view, bare] = [percentile(console, 0.5), percentile(floor, 0.5)]
    print(
      `first view: p50 ${view.toFixed(0)} ms, p95 ${percentile(console, 0.95).toFixed(0)} ms; bare page ${bare.toFixed(0)} ms`,
    )
    const slow: number[] = []
    for (let round = 0; round < SLOW_ROUNDS; round++) slow.push(await timeView(browser, `${url}/console`, SLOW))
    const cold = percentile(slow, 0.5)
    print(`first view on 1.6 Mbit/s and 150 ms: p50 ${cold.toFixed(0)} ms, slowest ${Math.max(...slow).toFixed(0)} ms`)
    const page = await browser.newPage()
    await page.goto(`${front}/console#/sessions/${await createSession(url)}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    const rest = await countFrames(page)
    const recorded = await recordEvents(url)
    const isFlat = await benchStream(page, proxy, recorded)
    const busy = await countFrames(page)
    print(
      `frames a second: ${rest.perSecond.toFixed(1)} at rest; ${busy.perSecond.toFixed(1)} at ${EVENTS_PER_SECOND} events/s, longest ${busy.longestMs.toFixed(0)} ms`,
    )
    await page.close()
    return [
      isFlat,
      await benchLongSessions(services, url, browser),
      goal(cold <= MAX_SLOW_VIEW_MS, `first view on a slow line within ${MAX_SLOW_VIEW_MS} ms: ${cold.toFixed(0)} ms`),
      goal(view <= MAX_FIRST_VIEW_MS, `first view within ${MAX_FIRST_VIEW_MS} ms: ${view.toFixed(0)} ms`),
      goal(
        busy.perSecond >= MIN_FRAMES * rest.perSecond,
        `frames at ${EVENTS_PER_SECOND} events/s, of those at rest: at least ${MIN_FRAMES}: ${(busy.perSecond / rest.perSecond).toFixed(2)}`,
      ),
    ].every(Boolean)
  } finally {
    await browser.close()
    proxy.close()
    await app.stop()
  }
}

/** Opens a page in a new profile, and returns the time until its heading is there. */
async function timeView(browser: Browser, address: string, line?: typeof SLOW): Promise<number> {
  const context = await browser.newContext()
  const page = await context.newPage()
  if (line !== undefined) {
    const devtools = await context.newCDPSession(page)
    await devtools.send('Network.enable')
    await devtools.send('Network.emulateNetworkConditions', line)
  }
  const startedAt = performance.now()
  await page.goto(address)
  await page.getByRole('heading', { level: 1 }).waitFor()
  const took = performance.now() - startedAt
  await context.close()
  return took
}

/** Counts the frames that a page draws in some seconds. */
const countFrames = (page: Page): Promise<{ perSecond: number; longestMs: number }> =>
  page.evaluate(
    (ms) =>
      new Promise((resolve) => {
        const times: number[] = []
        const take = (time: number) => {
          times.push(time)
          const [first = time] = times
          if (time - first < ms) return void requestAnimationFrame(take)
          const gaps = times.slice(1).map((at, index) => at - (times[index] ?? at))
          resolve({ perSecond: (gaps.length * 1000) / (time - first), longestMs: Math.max(...gaps) })
        }
        const { requestAnimationFrame } = globalThis as unknown as {
          requestAnimationFrame(run: (time: number) => void): void
        }
        requestAnimationFrame(take)
      }),
    SECONDS * 1000,
  )

type Proxy = Stream & { close(): void }

/** Passes everything to the service except streams, which get the events of `begin` at their pace. */
async function startProxy(url: string, port: number): Promise<Proxy> {
  const streams = new Set<ServerResponse>()
  const timers: NodeJS.Timeout[] = []
  let sent = 0
  const server: Server = createServer(async (request, response) => {
    const path = request.url ?? '/'
    if (path === '/floor') {
      response
        .setHeader('Content-Type', 'text/html')
        .end('<script type="module">document.body.innerHTML = "<h1>Floor</h1>"</script>')
    } else if (path.includes('/sse')) {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      response.write('event: connected\ndata: {"status":"connected"}\n\n')
      streams.add(response)
    } else {
      const headers = Object.entries(request.headers).filter(([name]) => !['host', 'connection'].includes(name))
      const answer = await fetch(url + path, { headers: headers.map(([name, value]) => [name, String(value)]) })
      const passed = [...answer.headers].filter(
        ([name]) => !/^(content-encoding|content-length|transfer-encoding)$/.test(name),
      )
      response.writeHead(answer.status, Object.fromEntries(passed)).end(Buffer.from(await answer.arrayBuffer()))
    }
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    begin: (events) => {
      const left = events[Symbol.iterator]()
      const timer = setInterval(() => {
        const { value: event, done } = left.next()
        if (done) return clearInterval(timer)
        sent++
        for (const stream of streams)
          stream.write(`event: ${event.type}\nid: ${event.id}\ndata: ${JSON.stringify(event)}\n\n`)
      }, 1000 / EVENTS_PER_SECOND)
      timers.push(timer)
    },
    get sent() {
      return sent
    },
    close: () => {
      for (const timer of timers) clearInterval(timer)
      server.closeAllConnections()
      server.close()
    },
  }
}

async function createSession(url: string): Promise<string> {
  return (await post(url, '/v1/sessions', {})).id
}

/** Returns the events of a real turn, whose text is one delta. */
async function recordEvents(url: string): Promise<Event[]> {
  const id = await createSession(url)
  await post(url, `/v1/sessions/${id}/messages?wait=30`, { message: { content: [{ type: 'text', text: 'Hello' }] } })
  const { data } = (await (await fetch(`${url}/v1/sessions/${id}/events?limit=1000`)).json()) as { data: Event[] }
  return data
}

async function post(url: string, path: string, body: object): Promise<{ id: string }> {
  const headers = { 'Content-Type': 'application/json' }
  const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
  return (await answer.json()) as { id: string }
}
