import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import pg from 'pg'
import { serveParent } from './child.ts'

/**
 * Floors of a stream, in one process that speaks as much of the service's HTTP as the bench does. /relay passes the
 * provider's tokens on in the service's frames, each 100 ms. /insert inserts each frame's row before that, by itself, into
 * a table with the columns of the events. No limits, no record of sessions, nothing survives.
 */
const [port = 0, providerPort = 0] = process.argv.slice(2).map(Number)
const BATCH_MS = 100
const CONTENT = /"content":"((?:[^"\\]|\\.)*)"/g

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL ?? '', max: 10 })
await pool.query(`CREATE SCHEMA IF NOT EXISTS bench; CREATE TABLE IF NOT EXISTS bench.rows (
  session_id uuid, sequence integer, type text, ts timestamptz(3), turn_id uuid, step text, data jsonb,
  PRIMARY KEY (session_id, sequence))`)

const readers = new Map<string, ServerResponse>()

function handle(request: IncomingMessage, response: ServerResponse): void {
  const [, kind = '', id = '', rest = ''] = /^\/(\w+)\/v1\/sessions\/?([\w-]*)\/?(\w*)/.exec(request.url ?? '') ?? []
  request.resume()
  if (rest === 'sse') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('event: connected\ndata: {"status":"connected"}\nretry: 100\n\n')
    readers.set(id, response)
    response.on('close', () => readers.delete(id))
    return
  }
  request.once('end', () => {
    response.writeHead(201, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ id: randomUUID() }))
    if (rest === 'messages') answer(id, kind === 'insert')
  })
}

/** Asks the provider, and passes its answer on to the session's reader. */
function answer(session: string, isInserted: boolean): void {
  const turn = randomUUID()
  let sequence = 0
  let accumulated = ''
  let pending = ''
  const send = (type: string, data: object) => {
    const event = { id: `event_${turn}`, type, ts: new Date().toISOString(), session_id: session, sequence, data }
    readers.get(session)?.write(`event: ${type}\nid: ${event.id}\ndata: ${JSON.stringify(event)}\nretry: 100\n\n`)
  }
  let flushed = Promise.resolve()
  const flush = () => {
    flushed = flushed.then(flushNext)
    return flushed
  }
  const flushNext = async () => {
    if (pending === '') return
    const delta = pending
    pending = ''
    accumulated += delta
    sequence++
    if (isInserted) {
      const text = `INSERT INTO bench.rows VALUES ($1, $2, 'output.message.delta', now(), $3, 'reason/1', $4)`
      await pool.query({ name: 'insert', text, values: [session, sequence, turn, JSON.stringify({ delta })] })
    }
    send('output.message.delta', { turn_id: turn, delta, accumulated })
  }
  const timer = setInterval(flush, BATCH_MS)
  const sent = request({ port: providerPort, method: 'POST', path: '/v1/chat/completions' }, (answered) => {
    answered.setEncoding('utf8')
    answered.on('data', (chunk: string) => {
      for (const [, text = ''] of chunk.matchAll(CONTENT)) pending += text
      if (accumulated === '') void flush()
    })
    answered.on('end', async () => {
      clearInterval(timer)
      await flush()
      send('session.idled', {})
    })
  })
  sent.end('{"messages":[{"role":"user","content":"Hello"}]}')
}

const server = createServer(handle)
await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
serveParent(
  'ready',
  async () => undefined,
  async () => server.closeAllConnections(),
)
