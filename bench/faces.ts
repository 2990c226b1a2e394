import { randomUUID } from 'node:crypto'
import { freePorts } from '../dev/services/index.ts'
import { startChild } from './child.ts'
import { goal, print } from './report.ts'
import { type Ground, startSite } from './site.ts'
import { median } from './statistics.ts'

/** Turns of each way in, at one in flight; the first ones warm the process up. */
const TURNS = 240
const WARM_UP = 80
/** Turns of one conversation, so that its history costs little. */
const TURNS_A_CHAT = 10
const MAX_RATIO = 1.1
const NATIVE = 'native, without a key'
const NATIVE_ONCE = 'native, with a key'

/** Way to have a message answered as a stream. `post` names the request of a turn; `isFirst` knows the first token. */
type Way = { name: string; post(chat: string, turn: number): Post | Promise<Post>; isFirst: RegExp }
type Post = { path: string; body: object; headers?: Record<string, string> }

/**
 * Times the first token of a turn that is posted and streamed in one request: natively, and through the faces that
 * stream text. They alternate turn by turn, so that all see the same machine. Prints each and the goal. The floor is the
 * native stream of a message that is posted once, by an Idempotency-Key, as the typed client does and as the faces do.
 */
export async function benchFaces(ground: Ground): Promise<boolean> {
  const [providerPort = 0] = await freePorts(1)
  const provider = await startChild('./provider.ts', { args: [`${providerPort}`] })
  const site = await startSite(ground, 'together', providerPort)
  try {
    const { id: agent } = await send(site.baseUrl, '/v1/agents', { name: 'Bench', system_prompt: 'Help.' })
    const ways = waysOf(site.baseUrl, agent)
    const times: number[][] = ways.map(() => [])
    for (let turn = 0; turn < WARM_UP + TURNS; turn++) {
      for (const [index, way] of ways.entries()) {
        const ms = await firstToken(site.baseUrl, way, turn)
        if (turn >= WARM_UP) times[index]?.push(ms)
      }
    }
    const [bare = Number.NaN, once = Number.NaN, ...others] = times.map(median)
    print('p50 of the first token in ms, one turn at a time')
    print(`${NATIVE.padEnd(24)}${bare.toFixed(1)}`)
    print(`${NATIVE_ONCE.padEnd(24)}${once.toFixed(1)}`)
    const met = others.map((ms, index) => {
      const name = ways[index + 2]?.name ?? ''
      print(`${name.padEnd(24)}${ms.toFixed(1)}, ${(ms / bare).toFixed(2)} of ${NATIVE}`)
      return goal(ms / once <= MAX_RATIO, `${name}: at most ${MAX_RATIO} of ${NATIVE_ONCE}: ${(ms / once).toFixed(2)}`)
    })
    return met.every(Boolean)
  } finally {
    await site.stop()
    await provider.stop()
  }
}

const NATIVE_DELTA = /^event: output\.message\.delta/m

function waysOf(baseUrl: string, agent: string): Way[] {
  const sessions = new Map<string, Promise<{ id: string }>>()
  const sessionOf = (chat: string): Promise<{ id: string }> => {
    const session = sessions.get(chat) ?? send(baseUrl, '/v1/sessions', { agent_id: agent })
    sessions.set(chat, session)
    return session
  }
  const text = (turn: number) => `Hello ${turn}`
  const native = async (chat: string, turn: number): Promise<Post> => ({
    path: `/v1/sessions/${(await sessionOf(chat)).id}/messages`,
    body: { message: { content: text(turn) } },
    headers: { accept: 'text/event-stream' },
  })
  return [
    { name: NATIVE, isFirst: NATIVE_DELTA, post: native },
    {
      name: NATIVE_ONCE,
      isFirst: NATIVE_DELTA,
      post: async (chat, turn) => {
        const { headers, ...rest } = await native(chat, turn)
        return { ...rest, headers: { ...headers, 'idempotency-key': randomUUID() } }
      },
    },
    {
      name: 'AI SDK 7',
      isFirst: /"type":"text-delta"/,
      post: (chat, turn) => ({
        path: `/v1/faces/ai-sdk/7/${agent}`,
        body: { id: chat, messages: [{ role: 'user', parts: [{ type: 'text', text: text(turn) }] }] },
      }),
    },
    {
      name: 'Chat Completions',
      isFirst: /"content":"[^"]/,
      post: (chat, turn) => ({
        path: '/v1/chat/completions?text=streamed',
        body: { model: agent, stream: true, messages: [{ role: 'user', content: text(turn) }] },
        headers: { 'x-session-id': chat },
      }),
    },
  ]
}

/** Posts a message and reads all of its stream. Returns the time until the first token. */
async function firstToken(baseUrl: string, way: Way, turn: number): Promise<number> {
  const { path, body, headers } = await way.post(`${way.name} ${Math.floor(turn / TURNS_A_CHAT)}`, turn)
  const startedAt = performance.now()
  const answer = await fetch(baseUrl + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  if (answer.status !== 200 || answer.body === null) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  let firstMs = Number.NaN
  let seen = ''
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    if (!Number.isNaN(firstMs)) continue
    seen += chunk
    if (way.isFirst.test(seen)) firstMs = performance.now() - startedAt
  }
  if (Number.isNaN(firstMs)) throw new Error(`${path}: no token came`)
  return firstMs
}

async function send(baseUrl: string, path: string, body: object): Promise<{ id: string }> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(baseUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as { id: string }
}
