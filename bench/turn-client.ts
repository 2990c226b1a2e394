import { Agent, request } from 'node:http'
import type { Turn } from './statistics.ts'

/** Time limit of a turn, and of a session's opening. */
const DEADLINE_MS = 120_000

type OnEvent = (type: string, data: string, at: number) => void
/**
 * Open stream of a session, which the service ends after some minutes. `turns` holds what its turns brought: the data of
 * the deltas, and of their beginnings.
 */
export type OpenSession = {
  id: string
  headers: Headers
  turns: StreamedTurn[]
  onEvent: OnEvent
  hasEnded: boolean
  close(): void
}
type Headers = Record<string, string>
type StreamedTurn = { begun: number; deltas: string[] }

/** Session of a client that reads only text. */
export type TextSession = { id: string; run(onText: (text: string) => void): Promise<Turn>; close(): void }

export type TurnClient = {
  /** Runs a turn in a session of the lane, which has the next turn in the next of its sessions. */
  turn(lane: number): Promise<Turn>
  sessions: OpenSession[]
  close(): void
}

/**
 * Opens streams of that many new sessions, in equal shares for the lanes. With several addresses, a session's messages
 * go to another one than its stream.
 */
export async function openClient(baseUrls: string[], lanes: number, sessionsPerLane: number): Promise<TurnClient> {
  const sessions: OpenSession[] = []
  const urlAt = (place: number) => baseUrls[place % baseUrls.length] ?? ''
  while (sessions.length < lanes * sessionsPerLane) sessions.push(await createSession(urlAt(sessions.length)))
  return {
    sessions,
    turn: async (lane) => {
      const own = sessions.filter((_, index) => index % lanes === lane)
      const session = own.reduce((least, one) => (one.turns.length < least.turns.length ? one : least))
      return runTurn(urlAt(sessions.indexOf(session) + 1), session)
    },
    close: () => {
      for (const session of sessions) session.close()
    },
  }
}

/**
 * Posts a message and waits until the session's stream says that the turn is over, as a user's browser does. Keeps the
 * data of its deltas, unless `onDelta` takes them.
 */
export async function runTurn(
  baseUrl: string,
  session: OpenSession,
  { deadlineMs = DEADLINE_MS, onDelta }: { deadlineMs?: number; onDelta?: (data: string) => void } = {},
): Promise<Turn> {
  const turn: StreamedTurn = { begun: 0, deltas: [] }
  session.turns.push(turn)
  const startedAt = performance.now()
  let firstMs = Number.NaN
  const ended = new Promise<number>((resolve) => {
    session.onEvent = (type, data, at) => {
      if (type === 'output.message.delta') {
        if (Number.isNaN(firstMs)) firstMs = at - startedAt
        if (onDelta === undefined) turn.deltas.push(data)
        else onDelta(data)
      }
      if (type === 'output.message.started') turn.begun++
      if (type === 'session.idled') resolve(at - startedAt)
    }
  })
  const body = { message: { content: [{ type: 'text', text: 'Hello' }] } }
  const posted = post(`${baseUrl}/v1/sessions/${session.id}/messages`, body, session.headers)
  const [wholeMs] = await inTime(Promise.all([ended, posted]), `a turn of ${session.id}`, deadlineMs)
  return { firstMs, wholeMs }
}

export async function createSession(baseUrl: string): Promise<OpenSession> {
  const { id } = await post(`${baseUrl}/v1/sessions`, {})
  return openSession(baseUrl, id)
}

type Opening = { since?: string | undefined; headers?: Headers; deadlineMs?: number }

/** Opens the stream of a session after the event `since`, or from the beginning. */
export async function openSession(
  baseUrl: string,
  id: string,
  { since, headers = {}, deadlineMs = DEADLINE_MS }: Opening = {},
): Promise<OpenSession> {
  const session: OpenSession = { id, headers, turns: [], onEvent: () => {}, hasEnded: false, close: () => {} }
  const query = since === undefined ? '' : `?since_id=${since}`
  const opened = new Promise<void>((resolve, reject) => {
    const stream = request(`${baseUrl}/v1/sessions/${id}/sse${query}`, { headers }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`opening ${id}: ${answer.statusCode}`))
      answer.setEncoding('utf8')
      answer.on('error', () => {})
      answer.on('close', () => {
        session.hasEnded = true
      })
      const read = readFrames((type, data, at) => (type === 'connected' ? resolve() : session.onEvent(type, data, at)))
      answer.on('data', read)
    })
    stream.on('error', reject)
    session.close = () => stream.destroy()
    stream.end()
  })
  await inTime(opened, `opening ${id}`, deadlineMs).catch((error) => {
    session.close()
    throw error
  })
  return session
}

/** Reads server-sent events. */
export function readFrames(onEvent: OnEvent): (chunk: string) => void {
  let rest = ''
  let type = ''
  return (chunk) => {
    const at = performance.now()
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line.startsWith('event: ')) type = line.slice(7)
      if (line.startsWith('data: ')) onEvent(type, line.slice(6), at)
    }
  }
}

export async function inTime<T>(work: Promise<T>, what: string, deadlineMs = DEADLINE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${deadlineMs} ms`)), deadlineMs)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** Uses its connections in turn, so that none is closed for being unused, as with a proxy or with many clients. */
export const agent = new Agent({ keepAlive: true, scheduling: 'fifo' })

function post(url: string, body: unknown, more: Headers = {}): Promise<{ id: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', ...more }
    const sent = request(url, { method: 'POST', agent, headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        text += chunk
      })
      answer.on('end', () => {
        if (answer.statusCode === 201) resolve(JSON.parse(text))
        else reject(new Error(`${url}: ${answer.statusCode} ${text}`))
      })
    })
    sent.on('error', reject)
    sent.end(JSON.stringify(body))
  })
}
