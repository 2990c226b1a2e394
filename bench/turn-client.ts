import { Agent, request } from 'node:http'
import type { Turn } from './statistics.ts'

/** Number of turns after which a lane changes its session, before the history costs more than a turn does. */
const TURNS_PER_SESSION = 10

type Lane = { sessionId: string; turns: number; on: (type: string, at: number) => void; close(): void }

/** Creates one client per lane. It posts a message and reads the session's stream, as a user's browser does. */
export function createTurnClient(baseUrl: string) {
  const lanes = new Map<number, Lane>()

  const turn = async (number: number): Promise<Turn> => {
    let lane = lanes.get(number)
    if (lane === undefined || lane.turns >= TURNS_PER_SESSION) {
      lane?.close()
      lane = await openLane(baseUrl)
      lanes.set(number, lane)
    }
    lane.turns++
    return timeTurn(baseUrl, lane)
  }
  const close = () => {
    for (const lane of lanes.values()) lane.close()
  }
  return { turn, close }
}

function timeTurn(baseUrl: string, lane: Lane): Promise<Turn> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now()
    let firstMs = Number.NaN
    lane.on = (type, at) => {
      if (type === 'output.message.delta' && Number.isNaN(firstMs)) firstMs = at - startedAt
      if (type === 'session.idled') resolve({ firstMs, wholeMs: at - startedAt })
    }
    const body = { message: { content: [{ type: 'text', text: 'Hello' }] } }
    post(`${baseUrl}/v1/sessions/${lane.sessionId}/messages`, body).catch(reject)
  })
}

async function openLane(baseUrl: string): Promise<Lane> {
  const { id } = await post(`${baseUrl}/v1/sessions`, {})
  const lane: Lane = { sessionId: id, turns: 0, on: () => {}, close: () => {} }
  await new Promise<void>((resolve, reject) => {
    const stream = request(`${baseUrl}/v1/sessions/${id}/sse`, (answer) => {
      let rest = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        const at = performance.now()
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) {
          if (line === 'event: connected') resolve()
          if (line.startsWith('event: ')) lane.on(line.slice(7), at)
        }
      })
    })
    stream.on('error', reject)
    lane.close = () => stream.destroy()
    stream.end()
  })
  return lane
}

const agent = new Agent({ keepAlive: true })

function post(url: string, body: unknown): Promise<{ id: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json' }
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
