import { createClient } from '../../client/dist/index.js'
import { sleep } from '../../lib/sleep.ts'
import { type Json, PATIENCE_MS } from './http.ts'
import { postToFace } from './mcp-face.ts'
import type { Texts } from './paced-model.ts'
import { followSession } from './storm-client.ts'

/**
 * Answer that a client has in the end, and what it had each time its connection broke off, or the service ended its
 * stream because the text had changed.
 */
export type Reading = { whole: Texts; broken: Texts[]; changed: Texts[] }

/** Client of a protocol, which reads the answer of a turn, and comes back as its protocol can until it has it all. */
export type TextClient = { name: string; read(): Promise<Reading> }

/** Addresses that a client uses in turn. Their processes may be killed. */
type Urls = string[]

const PAUSE_MS = 100
/** Limit on the requests of one client. */
const MAX_TRIES = 300

type Visit = Texts & { end: 'finished' | 'changed' | 'broken' | 'refused' }
const NOTHING: Texts = { text: '', thinking: '' }
const UNANSWERED: Visit = { ...NOTHING, end: 'refused' }

/** Visits the addresses until the answer is finished. `visit` gets the number of its try and the visits before. */
async function readByVisits(urls: Urls, visit: (url: string, before: Visit[]) => Promise<Visit>): Promise<Reading> {
  const visits: Visit[] = []
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const { end, text, thinking } = await visit(urls[tries % urls.length] ?? '', visits)
    visits.push({ end, text, thinking })
    if (end === 'finished') {
      const ended = (how: Visit['end']) => visits.filter((one) => one.end === how)
      return { whole: { text, thinking }, broken: ended('broken'), changed: ended('changed') }
    }
    await sleep(PAUSE_MS)
  }
  throw new Error(`not finished after ${MAX_TRIES} requests: ${visits.at(-1)?.end}`)
}

/** Requests an answer and reads it to its end, or until its connection breaks. Undefined if nothing was answered. */
async function request(url: string, body?: object, headers: Record<string, string> = {}) {
  const init = body && { method: 'POST', body: JSON.stringify(body) }
  const signal = AbortSignal.timeout(PATIENCE_MS)
  const sent = fetch(url, { ...init, headers: { 'Content-Type': 'application/json', ...headers }, signal })
  const answer = await sent.catch(() => undefined)
  if (answer === undefined) return undefined
  const { status } = answer
  if (status >= 300 && status !== 503) throw new Error(`${url}: ${status} ${await answer.text()}`)
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const bytes of answer.body ?? []) text += decoder.decode(bytes, { stream: true })
    return { status, text, isWhole: true }
  } catch {
    return { status, text, isWhole: false }
  }
}

/** Returns the data of all complete frames. */
const dataOf = (text: string): string[] =>
  text
    .split('\n\n')
    .slice(0, -1)
    .flatMap((frame) => frame.split('\n').filter((line) => line.startsWith('data: ')))
    .map((line) => line.slice('data: '.length))

const parsed = (text: string): Json[] =>
  dataOf(text)
    .filter((line) => line !== '[DONE]')
    .map((line) => JSON.parse(line))

/** Folds a stream of UI message chunks as the AI SDK does. */
function foldChunks(text: string): Visit {
  let parts: { type: string; id: string; text: string }[] = []
  let stepAt = 0
  let end: Visit['end'] = 'broken'
  for (const chunk of parsed(text)) {
    const { type, id, delta } = chunk
    if (type === 'start-step') stepAt = parts.length
    if (type === 'reset-step') parts = parts.slice(0, stepAt)
    if (/^(text|reasoning)-start$/.test(type)) parts.push({ type: type.replace('-start', ''), id, text: '' })
    const part = parts.findLast((one) => one.id === id)
    if (part && /^(text|reasoning)-delta$/.test(type)) part.text += delta
    if (type === 'finish') end = 'finished'
    if (type === 'error') end = endOfError(chunk.errorText)
  }
  const joined = (wanted: string) => parts.map((part) => (part.type === wanted ? part.text : '')).join('')
  return { text: joined('text'), thinking: joined('reasoning'), end }
}

function endOfError(sentence: string): 'changed' {
  if (!sentence.startsWith('The answer began anew')) throw new Error(sentence)
  return 'changed'
}

export type Style = 'held' | 'streamed'
/** Conversation of a face, in which all clients ask one question. */
export type Chat = { urls: Urls; agentId: string; chatId: string; question: string }

/** Client of the AI SDK's face. A stream that has ended too early is resumed, and a past turn is in the history. */
export function aiSdkClient({ urls, agentId, chatId, question }: Chat, version: string, style: Style): TextClient {
  const path = `/v1/faces/ai-sdk/${version}/${agentId}`
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: question }] }
  const post = { id: chatId, trigger: 'submit-message', messages: [message] }
  const fromHistory = async (url: string): Promise<Visit> => {
    const answer = await request(`${url}${path}/${chatId}/messages`)
    const last = answer?.isWhole && answer.status === 200 ? JSON.parse(answer.text).at(-1) : undefined
    if (last?.role !== 'assistant') return UNANSWERED
    const joined = (type: string) => last.parts.map((part: Json) => (part.type === type ? part.text : '')).join('')
    return { text: joined('text'), thinking: joined('reasoning'), end: 'finished' }
  }
  const visit = async (url: string, before: Visit[]): Promise<Visit> => {
    const isAccepted = before.some(({ end }) => end !== 'refused')
    // The way out that the error names.
    const query = `?text=${before.some(({ end }) => end === 'changed') ? 'held' : style}`
    const answer = await (isAccepted
      ? request(`${url}${path}/${chatId}/stream${query}`)
      : request(`${url}${path}${query}`, post))
    if (answer?.status === 204) return fromHistory(url)
    return answer?.status === 200 ? foldChunks(answer.text) : UNANSWERED
  }
  return { name: `AI SDK ${version}, ${style}`, read: () => readByVisits(urls, visit) }
}

/** Folds the chunks of a completion as OpenAI's clients do. */
function foldCompletion(text: string): Visit {
  const all: Visit = { ...NOTHING, end: 'broken' }
  for (const { choices: [choice] = [], error } of parsed(text)) {
    all.text += choice?.delta.content ?? ''
    all.thinking += choice?.delta.reasoning_content ?? ''
    if (choice?.finish_reason === 'stop') all.end = 'finished'
    if (error !== undefined) all.end = endOfError(error.message)
  }
  return all
}

/** Client of Chat Completions, which can only send a request again. It then gets the same turn from its start. */
export function openaiClient({ urls, agentId, chatId, question }: Chat, style: Style | 'whole'): TextClient {
  const stream = style !== 'whole'
  const body = { model: agentId, stream, messages: [{ role: 'user', content: question }] }
  // Its messages have no ids. Without a key the request would be a new one a few seconds after the end of its turn.
  const headers = { 'X-Session-Id': chatId, 'Idempotency-Key': chatId }
  const visit = async (url: string, before: Visit[]): Promise<Visit> => {
    const text = before.some(({ end }) => end === 'changed') || !stream ? 'held' : style
    const answer = await request(`${url}/v1/chat/completions?text=${text}`, body, headers)
    if (answer?.status !== 200) return UNANSWERED
    if (stream) return foldCompletion(answer.text)
    if (!answer.isWhole) return { ...NOTHING, end: 'broken' }
    const { content, reasoning_content } = JSON.parse(answer.text).choices[0].message
    return { text: content, thinking: reasoning_content ?? '', end: 'finished' }
  }
  return { name: `Chat Completions, ${style}`, read: () => readByVisits(urls, visit) }
}

type Place = { urls: Urls; sessionId: string; turnId: string }

/** Client of the MCP server, which asks for the answer until the turn has ended. It gets no thinking. */
export function mcpClient({ urls, sessionId, turnId }: Place): TextClient {
  const args = { session: sessionId, turn: turnId, wait_seconds: 5 }
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'agent_get', arguments: args } }
  const visit = async (url: string): Promise<Visit> => {
    const answer = await postToFace(url, message).catch(() => undefined)
    const { status, text } = answer?.body?.result?.structuredContent ?? {}
    return status === 'completed' ? { text, thinking: '', end: 'finished' } : UNANSWERED
  }
  return { name: 'MCP', read: () => readByVisits(urls, visit) }
}

/** Client of the event stream, which reconnects by the last id and folds the events as docs/events.md says. */
export function rawClient({ urls, sessionId, turnId }: Place): TextClient {
  const read = async (): Promise<Reading> => {
    const follower = followSession(urls, sessionId)
    await follower.until(({ type }) => type === 'session.idled')
    await follower.stop()
    const whole = { ...NOTHING }
    for (const { type, data, context } of follower.received) {
      if (context.turn_id !== turnId) continue
      if (type === 'output.message.started') Object.assign(whole, NOTHING)
      if (type === 'output.message.delta') whole.text += data.delta
      if (type === 'reason.thinking.delta') whole.thinking += data.delta
    }
    return { whole, broken: [], changed: [] }
  }
  return { name: 'raw SSE', read }
}

/** Typed client, whose parts are folded by their `delta`. */
export function typedClient({ urls, sessionId, turnId }: Place): TextClient {
  let tries = 0
  const send = (request: Request) =>
    fetch(new Request(request.url.replace(/^http:\/\/[^/]*/, `${urls[tries++ % urls.length]}`), request))
  const client = createClient({ baseUrl: 'http://service.test', fetch: send })
  const read = async (): Promise<Reading> => {
    const whole = { ...NOTHING }
    const answer = client.session(sessionId).answer(turnId, {
      onPart: (part) => {
        if (part.type === 'restarted') Object.assign(whole, NOTHING)
        if (part.type === 'text') whole.text += part.delta
        if (part.type === 'thinking') whole.thinking += part.delta
        if ((part.type === 'text' || part.type === 'thinking') && part.text !== whole[part.type])
          throw new Error(`the deltas make ${whole[part.type]}, and not ${part.text}`)
      },
    })
    const text = await answer.text()
    if (text !== whole.text) throw new Error(`the parts make ${whole.text}, and the answer is ${text}`)
    return { whole, broken: [], changed: [] }
  }
  return { name: 'typed client', read }
}
