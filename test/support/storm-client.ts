import { randomUUID } from 'node:crypto'
import { sleep } from '../../lib/sleep.ts'
import type { Json } from './http.ts'
import { type Frame, openStream } from './stream.ts'

/** Time after which a client gives up a request, or a stream that has been silent, and tries again. */
const PATIENCE_MS = 6000
const PAUSE_MS = 100
/** Limit on the tries of one request, more than any outage lasts. */
const MAX_TRIES = 600

/** Sends a request until it is answered, each time to the next address, with one Idempotency-Key. */
export async function callUntilAnswered(urls: string[], method: string, path: string, body?: unknown): Promise<Json> {
  const headers = {
    'Idempotency-Key': randomUUID(),
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
  }
  let last = ''
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    try {
      const answer = await fetch(`${urls[tries % urls.length]}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(PATIENCE_MS),
      })
      const answered = await answer.text()
      last = `${answer.status} ${answered}`
      if (answer.ok) return JSON.parse(answered)
      // Whatever a client cannot be blamed for may be repeated. 500 is never due to an outage.
      if (![408, 429, 503].includes(answer.status)) break
    } catch (error) {
      last = String(error)
    }
    await sleep(PAUSE_MS)
  }
  throw new Error(`${method} ${path}: ${last}`)
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
