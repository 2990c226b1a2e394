import { get } from 'node:http'
import type { WireEvent } from '../contract/events.ts'
import type { RunningServices } from '../dev/services/index.ts'
import { publishEvents } from '../domain/events/live/live-stream.ts'
import { appendEvents } from '../domain/events/log/append.ts'
import { toId } from '../domain/kit/ids.ts'
import { readConfig } from '../platform/config.ts'
import { createLog } from '../platform/log.ts'
import { buildPlatform, type Platform } from '../platform/wiring/build.ts'
import { type Child, startChild } from './child.ts'
import type { Memory } from './memory.ts'
import { type Clients, openClients } from './sse-clients.ts'
import { type Rate, type Relayed, reportSse } from './sse-report.ts'
import { type BenchSession, insertLongSession, insertSessions } from './sse-sessions.ts'
import { percentile } from './statistics.ts'

const SESSIONS = 1000
const STREAMS_PER_SESSION = 2
const STREAMS = SESSIONS * STREAMS_PER_SESSION
const EVENTS_PER_SECOND = 1000
/** Number of events recorded together, as when a step ends or tools run at once. */
const EVENTS_PER_APPEND = 5
const PACED_EVENTS = 10_000
const WARM_UP_EVENTS = 5000
const RATE_MS = 5000
/** Number of entries in flight: fewer than the relay's streams keep. */
const WINDOW = 500
const LONG_SESSION = 100_000
const DEADLINE_MS = 60_000
const TEXT = 'some twenty tokens of an answer, as they come in a tenth of a second of a model that writes at its pace. '

/**
 * Measures one API process with 2,000 open streams, and a bare relay that reads the same Redis streams: memory of a
 * stream, time from append to client, and events a second. Also measures how fast a long session is replayed. Prints
 * all results and the goals.
 */
export async function benchSse(services: RunningServices, port: number): Promise<boolean> {
  const environment = {
    DATABASE_URL: services.databaseUrl,
    REDIS_URL: services.redisUrl,
    TEMPORAL_ADDRESS: services.temporalAddress,
    PORT: `${port}`,
    HOST: '127.0.0.1',
    SSE_MAX_STREAMS_PER_ORGANIZATION: '10000',
  }
  const platform = await buildPlatform(readConfig({ ...process.env, ...environment }), createLog('warn', 'bench'))
  const withChild = async <T>(file: string, work: (child: Child) => Promise<T>): Promise<T> => {
    const child = await startChild(file, { env: environment })
    try {
      return await work(child)
    } finally {
      await child.stop()
    }
  }
  try {
    const id = await insertLongSession(platform.deps, LONG_SESSION, TEXT)
    const replay = (path: string, mark = '\nid: ', events = LONG_SESSION) =>
      measureReplay(port, pathOf(id, path), events, mark)
    const floor = await withChild('./sse-floor.ts', async (child) => ({
      relayed: await measureRelay(platform, child, port),
      replayed: await replay('events'),
    }))
    const service = await withChild('./sse-api.ts', async (child) => ({
      relayed: await measureRelay(platform, child, port),
      replayed: await replay('sse'),
    }))
    const others = await withChild('./sse-api.ts', async () => ({
      listed: await replay('events', '{"id":"event_'),
      withoutCalls: await replay('sse?exclude=llm.generation', '\nid: ', LONG_SESSION * 0.95),
    }))
    return reportSse(floor, service, others)
  } finally {
    await platform.close()
  }
}

const pathOf = (sessionId: string, rest: string): string => `/v1/sessions/${toId('session', sessionId)}/${rest}`

async function measureRelay(platform: Platform, child: Child, port: number): Promise<Relayed> {
  const openOn = async (sessions: BenchSession[], onText?: (text: string, at: number) => void) => {
    const paths = sessions.flatMap(({ id }) => Array<string>(STREAMS_PER_SESSION).fill(pathOf(id, 'sse')))
    return openClients(port, paths, onText)
  }
  // The first streams also show the process growing to its size; the next ones show what a stream takes.
  const empty = await child.ask<Memory>('memory')
  const first = await openOn(await insertSessions(platform.deps, SESSIONS))
  const before = await child.ask<Memory>('memory')
  const sessions = await insertSessions(platform.deps, SESSIONS)
  let came: { number: number; at: number }[] = []
  const clients = await openOn(sessions, (text, at) => {
    for (const [, number] of text.matchAll(/"delta":"(\d+) /g)) came.push({ number: Number(number), at })
  })
  const after = await child.ask<Memory>('memory')
  first.close()
  await appendPaced(platform, sessions, clients, WARM_UP_EVENTS)
  came = []
  const appends = await appendPaced(platform, sessions, clients, PACED_EVENTS)
  const since = (of: 'begunAt' | 'doneAt') => came.map(({ number, at }) => at - (appends[number]?.[of] ?? Number.NaN))
  const rate = await publishAll(platform, child, sessions, clients)
  const used = await child.ask<Memory>('memory')
  clients.close()
  return {
    liveBytes: (after.live - before.live) / STREAMS,
    residentBytes: (after.resident - before.resident) / STREAMS,
    firstResidentBytes: (before.resident - empty.resident) / STREAMS,
    usedResidentBytes: (used.resident - empty.resident) / STREAMS,
    appendMs: timesOf(appends.map(({ begunAt, doneAt }) => doneAt - begunAt)),
    clientMs: timesOf(since('begunAt')),
    relayMs: timesOf(since('doneAt')),
    ...rate,
  }
}

const timesOf = (samples: number[]) => ({ p50: percentile(samples, 0.5), p99: percentile(samples, 0.99) })
const now = (): number => performance.timeOrigin + performance.now()

/** Appends events to the database at a steady pace, as a worker does; each carries the number of its append. */
async function appendPaced({ deps }: Platform, sessions: BenchSession[], clients: Clients, events: number) {
  const before = clients.received()
  const appending: Promise<{ begunAt: number; doneAt: number }>[] = []
  const append = async (number: number) => {
    const session = sessions[number % sessions.length] as BenchSession
    const delta = `${number} ${TEXT}`
    const event = { type: 'output.message.delta', step: 'reason:1', execId: session.execId, data: { delta } } as const
    const begunAt = now()
    const writer = { sessionId: session.id, turnId: session.turnId }
    await appendEvents(deps, writer, Array(EVENTS_PER_APPEND).fill({ ...event, parts: { accumulated: delta } }))
    return { begunAt, doneAt: now() }
  }
  const appends = events / EVENTS_PER_APPEND
  const startedAt = performance.now()
  while (appending.length < appends) {
    const due = ((performance.now() - startedAt) * EVENTS_PER_SECOND) / EVENTS_PER_APPEND / 1000
    while (appending.length < Math.min(due, appends)) appending.push(append(appending.length))
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  const done = await Promise.all(appending)
  await clients.until(before + events * STREAMS_PER_SESSION, DEADLINE_MS)
  return done
}

/** Publishes events without recording them, as fast as they are delivered, to measure the relay alone. */
async function publishAll({ deps }: Platform, child: Child, sessions: BenchSession[], clients: Clients) {
  const recorded = (WARM_UP_EVENTS + PACED_EVENTS) / sessions.length
  const before = clients.received()
  const cpuBefore = await child.ask<NodeJS.CpuUsage>('cpu')
  const startedAt = performance.now()
  let published = 0
  while (performance.now() - startedAt < RATE_MS) {
    const delivered = (clients.received() - before) / STREAMS_PER_SESSION
    for (; published - delivered < WINDOW; published++) {
      const session = sessions[published % sessions.length] as BenchSession
      const sequence = recorded + Math.floor(published / sessions.length) + 1
      publishEvents(deps, session.id, session.turnId, [createEvent(deps, session, sequence)])
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  const delivered = published * STREAMS_PER_SESSION
  await clients.until(before + delivered, DEADLINE_MS)
  const elapsedMs = performance.now() - startedAt
  const cpu = await child.ask<NodeJS.CpuUsage>('cpu')
  const cpuUs = cpu.user + cpu.system - cpuBefore.user - cpuBefore.system
  return { perSecond: (delivered * 1000) / elapsedMs, cpuUs: cpuUs / delivered, busy: cpuUs / 1000 / elapsedMs }
}

function createEvent(deps: Platform['deps'], { id, turnId }: BenchSession, sequence: number): WireEvent {
  const turn = toId('turn', turnId)
  return {
    id: deps.events.ids.encode(id, sequence, Date.now()),
    type: 'output.message.delta',
    ts: new Date().toISOString(),
    session_id: toId('session', id),
    sequence,
    context: { turn_id: turn, trace_id: turn },
    data: { turn_id: turn, delta: TEXT, accumulated: TEXT.repeat(3) },
  }
}

/** Measures how fast a session's events are read; `mark` occurs in the answer once for each event. */
async function measureReplay(port: number, path: string, events: number, mark: string): Promise<Rate> {
  const startedAt = performance.now()
  const bytes = await readUntil(port, path, events, Buffer.from(mark))
  const elapsedMs = performance.now() - startedAt
  return { perSecond: (events * 1000) / elapsedMs, megabytesPerSecond: bytes / elapsedMs / 1000 }
}

/** Reads an answer until it has that many events; returns the number of bytes read. */
function readUntil(port: number, path: string, events: number, mark: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = get({ port, path, agent: false }, (answer) => {
      let rest = Buffer.alloc(0)
      let seen = 0
      let bytes = 0
      answer.on('error', reject)
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        const whole = Buffer.concat([rest, chunk])
        rest = whole.subarray(1 - mark.length)
        for (let at = whole.indexOf(mark); at >= 0; at = whole.indexOf(mark, at + mark.length)) seen++
        if (seen < events) return
        clearTimeout(timer)
        resolve(bytes)
        sent.destroy()
      })
    })
    const timer = setTimeout(() => sent.destroy(new Error(`${path} took too long`)), DEADLINE_MS)
    sent.on('error', reject)
  })
}
