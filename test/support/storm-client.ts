import { randomUUID } from 'node:crypto'
import { sleep } from '../../lib/sleep.ts'
import type { Json } from './http.ts'
import { type Frame, openStream } from './stream.ts'

/** Time after which a client gives up a request, or a stream that has been silent, and tries again. */
const PATIENCE_MS = 6000
const PAUSE_MS = 100
/** Limit on the tries of one request, more than any outage lasts. */
const LIMIT_MS = 300_000

/** Time of one try, pause before the next one, and time after which a request is given up. `onRepeat` is told of each. */
type Patience = { tryMs?: number; pauseMs?: number; limitMs?: number; onRepeat?: () => void }

/**
 * Sends a request until it is answered, each time to the next address, with one Idempotency-Key. Repeats what a client
 * cannot be blamed for: 500 is never due to an outage.
 */
export async function sendUntilAnswered(
  urls: string[],
  method: string,
  path: string,
  body?: unknown,
  { tryMs = PATIENCE_MS, pauseMs = PAUSE_MS, limitMs = LIMIT_MS, onRepeat }: Patience = {},
): Promise<{ status: number; body: Json }> {
  const headers = {
    'Idempotency-Key': randomUUID(),
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
  }
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const until = Date.now() + limitMs
  let last = ''
  for (let tries = 0; Date.now() < until; tries++) {
    let answered: { status: number; text: string } | undefined
    try {
      const signal = AbortSignal.timeout(tryMs)
      const answer = await fetch(`${urls[tries % urls.length]}${path}`, { method, headers, signal, ...sent })
      answered = { status: answer.status, text: await answer.text() }
      last = `${answered.status} ${answered.text}`
    } catch (error) {
      // The process has gone, perhaps after it did what was asked.
      last = String(error)
    }
    if (answered && ![408, 429, 503].includes(answered.status)) {
      const { status, text } = answered
      return { status, body: text && JSON.parse(text) }
    }
    onRepeat?.()
    await sleep(pauseMs)
  }
  throw new Error(`${method} ${path}: ${last}`)
}

/** Sends a request until it succeeds. Throws when it is refused. */
export async function callUntilAnswered(urls: string[], method: string, path: string, body?: unknown): Promise<Json> {
  const answer = await sendUntilAnswered(urls, method, path, body)
  if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}

/** Client that follows a session through any number of broken connections. */
export type Follower = {
  received: Json[]
  /** Number of connections that brought at least one event. */
  connections(): number
  /** Resolves once an event fits, received already or later. */
  until(fits: (event: Json) => boolean): Promise<void>
  stop(): Promise<void>
}

export function followSession(urls: string[], sessionId: string, from?: string): Follower {
  const received: Json[] = []
  const waiting = new Set<() => void>()
  const over = new AbortController()
  let connections = 0

  async function readOnce(url: string): Promise<void> {
    const since = received.at(-1)?.id ?? from
    const visit = new AbortController()
    const signal = AbortSignal.any([over.signal, visit.signal])
    const before = received.length
    const silence = setTimeout(() => visit.abort(), PATIENCE_MS)
    const onFrame = (frame: Frame) => {
      silence.refresh()
      if (frame.id === undefined) return
      received.push(frame.data)
      for (const look of waiting) look()
    }
    try {
      const query = since === undefined ? '' : `?since_id=${since}`
      const stream = await openStream(url, `/v1/sessions/${sessionId}/sse${query}`, { signal, onFrame })
      await stream.ended
    } finally {
      clearTimeout(silence)
      if (received.length > before) connections++
    }
  }

  const following = (async () => {
    for (let visit = 0; !over.signal.aborted; visit++) {
      await readOnce(urls[visit % urls.length] ?? '').catch(() => {})
      await sleep(PAUSE_MS)
    }
  })()
  return {
    received,
    connections: () => connections,
    until: (fits) =>
      new Promise((resolve) => {
        const look = () => {
          if (!received.some(fits)) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    stop: async () => {
      over.abort()
      await following
    },
  }
}
