import { setTimeout as sleep } from 'node:timers/promises'
import { serveParent } from './child.ts'
import { createPeerSession, type PeerName } from './peers/client.ts'
import { percentile } from './statistics.ts'
import { createSession, runTurn, type TextSession } from './turn-client.ts'

/** Streams to read: that many sessions with a turn each, whose starts are spread over a time. A peer has one address. */
export type StreamsJob = { baseUrls: string[]; peer?: PeerName; count: number; tokens: number; spreadMs: number }

/** Times in ms of first tokens, and of all tokens from their emission. `wrong` has a sentence for each stream that differs. */
export type StreamsSeen = { firstMs: number[]; relay: { p50: number; p95: number; p99: number }; wrong: string[] }

const OPENED_AT_ONCE = 20
const now = () => performance.timeOrigin + performance.now()

async function read({ baseUrls, peer, count, tokens, spreadMs }: StreamsJob): Promise<StreamsSeen> {
  const urlAt = (place: number) => baseUrls[place % baseUrls.length] ?? ''
  const sessions: TextSession[] = []
  const create = (place: number) =>
    peer === undefined ? createTextSession(urlAt(place), urlAt(place + 1)) : createPeerSession(peer, urlAt(place))
  const lane = async () => {
    while (sessions.length < count) sessions.push(await create(sessions.length))
  }
  const delays: number[] = []
  const wrong: string[] = []
  try {
    await Promise.all(Array.from({ length: OPENED_AT_ONCE }, lane))
    const firstMs = await Promise.all(
      sessions.slice(0, count).map(async (session, index) => {
        await sleep((spreadMs * index) / count)
        const seen = createReader(delays)
        const { firstMs } = await session.run(seen.read)
        if (seen.next() !== tokens) wrong.push(`${session.id}: ${seen.next()} of ${tokens} tokens in order`)
        return firstMs
      }),
    )
    return { firstMs, relay: { p50: at(delays, 0.5), p95: at(delays, 0.95), p99: at(delays, 0.99) }, wrong }
  } finally {
    for (const session of sessions) session.close()
  }
}

/** Session of the service, whose messages go to another address than its stream. */
async function createTextSession(streamUrl: string, messageUrl: string): Promise<TextSession> {
  const session = await createSession(streamUrl)
  const textOf = (data: string) => (JSON.parse(data) as { data: { delta: string } }).data.delta
  return {
    id: session.id,
    run: (onText) => runTurn(messageUrl, session, { onDelta: (data) => onText(textOf(data)) }),
    close: session.close,
  }
}

const at = (delays: number[], share: number): number => percentile(delays, share)

/** Reads stamped tokens: each has to be the next one. Adds the time that each has taken. */
function createReader(delays: number[]) {
  let next = 0
  let isBroken = false
  return {
    /** Number of tokens that have come in order, or the place of the first wrong one. */
    next: () => next,
    read: (text: string) => {
      for (const token of text.trim().split(' ')) {
        const [index, sentAt] = token.split('@').map(Number)
        isBroken ||= index !== next
        if (isBroken) return
        next++
        delays.push(now() - (sentAt ?? Number.NaN))
      }
    },
  }
}

serveParent(
  'ready',
  (job) => read(job as StreamsJob),
  async () => {},
)
