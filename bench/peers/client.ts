import { randomUUID } from 'node:crypto'
import { type IncomingMessage, request } from 'node:http'
import type { Turn } from '../statistics.ts'
import { agent, inTime, readFrames, type TextSession } from '../turn-client.ts'

/** What a client of a peer sends and reads. `text` returns the delta of an event, or undefined. */
type Wire = {
  /** Path that creates a session, and the answer's field with its id; without it a session begins with its first turn. */
  create?: { path: string; id: string }
  turn(session: string): { path: string; body: object }
  text(type: string, event: unknown): string | undefined
}

const durable: Wire = {
  turn: (session) => ({ path: `/sessions/${session}`, body: {} }),
  text: (_type, event) => (event as { delta: string }).delta,
}

export const PEERS = {
  agno: {
    turn: (session_id) => ({
      path: '/agents/bench/runs',
      body: new URLSearchParams({ message: 'Hello', stream: 'true', session_id }),
    }),
    text: (type, event) => (type === 'RunContent' ? (event as { content: string }).content : undefined),
  },
  dbos: durable,
  langgraph: {
    create: { path: '/threads', id: 'thread_id' },
    turn: (session) => ({
      path: `/threads/${session}/runs/stream`,
      body: {
        assistant_id: 'bench',
        input: { messages: [{ role: 'user', content: 'Hello' }] },
        stream_mode: ['messages-tuple'],
      },
    }),
    text: (type, event) => (type === 'messages' ? (event as [{ content: string }])[0].content : undefined),
  },
  adk: {
    create: { path: '/apps/adk/users/bench/sessions', id: 'id' },
    turn: (sessionId) => ({
      path: '/run_sse',
      body: {
        appName: 'adk',
        userId: 'bench',
        sessionId,
        newMessage: { role: 'user', parts: [{ text: 'Hello' }] },
        streaming: true,
      },
    }),
    text: (_type, event) => {
      const { partial, content } = event as { partial?: boolean; content?: { parts: { text: string }[] } }
      return partial === true ? content?.parts[0]?.text : undefined
    },
  },
  restate: durable,
} satisfies Record<string, Wire>

export type PeerName = keyof typeof PEERS

/** Creates a session of a peer. A turn is one request whose answer streams it, and is over with the answer. */
export async function createPeerSession(name: PeerName, url: string): Promise<TextSession> {
  const wire: Wire = PEERS[name]
  const id = wire.create === undefined ? randomUUID() : await create(url + wire.create.path, wire.create.id)
  const run = async (onText: (text: string) => void): Promise<Turn> => {
    const { path, body } = wire.turn(id)
    const startedAt = performance.now()
    let firstMs = Number.NaN
    const answer = await post(url + path, body)
    const read = readFrames((type, data, at) => {
      const text = wire.text(type.trimEnd(), JSON.parse(data))
      if (!text) return
      if (Number.isNaN(firstMs)) firstMs = at - startedAt
      onText(text)
    })
    for await (const chunk of answer) read(chunk)
    return { firstMs, wholeMs: performance.now() - startedAt }
  }
  return { id, run: (onText) => inTime(run(onText), `a turn of ${name}`), close: () => {} }
}

async function create(url: string, field: string): Promise<string> {
  let text = ''
  for await (const chunk of await post(url, {})) text += chunk
  return JSON.parse(text)[field]
}

function post(url: string, body: object): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const isForm = body instanceof URLSearchParams
    const headers = { 'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json' }
    const sent = request(url, { method: 'POST', agent, headers }, (answer) => {
      answer.setEncoding('utf8')
      if (answer.statusCode === 200) resolve(answer)
      else reject(new Error(`${url}: ${answer.statusCode}`))
    })
    sent.on('error', reject)
    sent.end(isForm ? body.toString() : JSON.stringify(body))
  })
}
