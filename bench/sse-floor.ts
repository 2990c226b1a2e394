import { createServer, type Socket } from 'node:net'
import pg from 'pg'
import { SessionId } from '../contract/kit/ids.ts'
import { RELAY_STREAMS, relayKey } from '../domain/events/live/live-entry.ts'
import type { RedisClient } from '../domain/kit/deps.ts'
import { readConfig } from '../platform/config.ts'
import { createLog } from '../platform/log.ts'
import { redisConnector } from '../platform/redis.ts'
import { serveParent } from './child.ts'
import { measureMemory } from './memory.ts'

/**
 * Minimal relay: one blocking XREAD on the service's own Redis streams, and each entry written to the sockets of its
 * session. No HTTP but the head, no cursor, no limits, no back-pressure. A path that ends with /events returns the
 * session's rows as they are stored, read by a bare Postgres client.
 */
const config = readConfig()
const { PORT, REDIS_PREFIX, DATABASE_URL } = config
const ROWS = 1000
const [redis] = redisConnector(config).connectReaders(createLog('warn', 'floor'), 1) as [RedisClient]
const streams = new Map<string, Set<Socket>>()
const HEAD =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: connected\ndata: {"status":"connected"}\n\n'

const server = createServer((socket) => {
  socket.setNoDelay(true)
  socket.on('error', () => socket.destroy())
  socket.once('data', (head) => {
    const [, id = '', rest] = /(session_[0-9a-f]{32})\/(\w+)/.exec(head.toString('latin1')) ?? []
    const sessionId = SessionId.safeParse(id).data ?? ''
    socket.write(HEAD)
    if (rest === 'events') return void replay(socket, sessionId)
    const peers = streams.get(sessionId) ?? new Set()
    streams.set(sessionId, peers.add(socket))
    socket.on('close', () => peers.delete(socket))
  })
})

async function replay(socket: Socket, sessionId: string): Promise<void> {
  const client = new pg.Client({ connectionString: DATABASE_URL })
  await client.connect()
  const text = `SELECT sequence, type, data::text FROM events WHERE session_id = $1 AND sequence > $2
    ORDER BY sequence LIMIT ${ROWS}`
  for (let after = 0; ; ) {
    const { rows } = await client.query({ name: 'replay', text, values: [sessionId, after] })
    if (rows.length === 0 || socket.destroyed) break
    after = rows.at(-1).sequence
    const frames = rows.map((row) => `event: ${row.type}\nid: ${row.sequence}\ndata: ${row.data}\nretry: 100\n\n`)
    if (!socket.write(frames.join('')))
      await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve))
  }
  await client.end()
}

const keys = Array.from({ length: RELAY_STREAMS }, (_, index) => relayKey(REDIS_PREFIX, index))

async function relay(): Promise<void> {
  const positions = keys.map(() => '0-0')
  for (;;) {
    const command = ['COUNT', 1000, 'BLOCK', 2000, 'STREAMS', ...keys, ...positions]
    const answer = (await redis.call('XREAD', ...command)) as [string, [string, string[]][]][] | null
    for (const [key, entries] of answer ?? []) {
      for (const [id, fields] of entries) {
        forward(fields)
        positions[keys.indexOf(key)] = id
      }
    }
  }
}

function forward(fields: string[]): void {
  const peers = streams.get(fields[0] ?? '') ?? []
  for (let at = 2; at + 3 < fields.length; at += 4) {
    const frame = `event: ${fields[at + 1]}\nid: ${fields[at + 2]}\ndata: ${fields[at + 3]}\nretry: 100\n\n`
    for (const socket of peers) socket.write(frame)
  }
}

await new Promise<void>((resolve) => redis.once('ready', () => resolve()))
void relay()
await new Promise<void>((resolve) => server.listen(PORT, '127.0.0.1', resolve))
serveParent(
  'ready',
  async (question) => (question === 'memory' ? measureMemory() : process.cpuUsage()),
  async () => redis.disconnect(),
)
