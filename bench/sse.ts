import type { WireEvent } from '../contract/events.ts'
import { appendEvents } from '../domain/events/append.ts'
import { publishEvents } from '../domain/events/relay.ts'
import { toId } from '../domain/ids.ts'
import { buildPlatform, type Platform } from '../platform/build.ts'
import { readConfig } from '../platform/config.ts'
import { createLog } from '../platform/log.ts'
import type { RunningServices } from '../scripts/services.ts'
import { type Child, startChild } from './child.ts'
import type { Memory } from './memory.ts'
import { type Clients, openClients } from './sse-clients.ts'
import { type BenchSession, insertSessions } from './sse-sessions.ts'
import { percentile } from './statistics.ts'

const SESSIONS = 1000
const STREAMS_PER_SESSION = 2
const EVENTS_PER_SECOND = 1000
const PACED_MS = 8000
const RATE_MS = 5000
/** Entries on their way at once: less than a relay stream keeps. */
const WINDOW = 500
const TEXT =
  'some twenty tokens of an answer, as they come in a tenth of a second of a model that writes at its usual pace. '

type Target = { name: string; file: string }
const TARGETS: Target[] = [
  { name: 'floor', file: './sse-floor.ts' },
  { name: 'service', file: './sse-api.ts' },
]

type Measured = {
  live: number
  resident: number
  p50: number
  p99: number
  perSecond: number
  cpuPerEvent: number
}

export async function benchSse(services: RunningServices, port: number): Promise<boolean> {
  const environment = {
    DATABASE_URL: services.databaseUrl,
    REDIS_URL: services.redisUrl,
    TEMPORAL_ADDRESS: services.temporalAddress,
    PORT: `${port}`,
    HOST: '127.0.0.1',
    SSE_MAX_STREAMS_PER_ORGANIZATION: '10000',
  }
  const config = readConfig({ ...process.env, ...environment })
  const platform = await buildPlatform(config, createLog('warn', 'bench'))
  try {
    for (const target of TARGETS) {
      const child = await startChild(target.file, { env: environment })
      try {
        console.log(target.name, await measure(platform, child, port))
      } finally {
        await child.stop()
      }
    }
    return true
  } finally {
    await platform.close()
  }
}

async function measure(platform: Platform, child: Child, port: number): Promise<Measured> {
  const sessions = await insertSessions(platform.deps, SESSIONS)
  const paths = sessions.flatMap(({ id }) => Array(STREAMS_PER_SESSION).fill(`/v1/sessions/${toId('session', id)}/sse`))
  const before = await child.ask<Memory>('memory')
  const latencies: number[] = []
  const clients = await openClients(port, paths, (text, at) => {
    for (const [, sent] of text.matchAll(/"delta":"(\d+\.\d+) /g)) latencies.push(at - Number(sent))
  })
  const after = await child.ask<Memory>('memory')
  await appendPaced(platform, sessions, clients)
  const { p50, p99 } = { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) }
  clients.close()

  const others = await insertSessions(platform.deps, SESSIONS)
  const otherPaths = others.flatMap(({ id }) =>
    Array(STREAMS_PER_SESSION).fill(`/v1/sessions/${toId('session', id)}/sse`),
  )
  const counting = await openClients(port, otherPaths)
  const rate = await publishAll(platform, child, others, counting)
  counting.close()
  return {
    live: (after.live - before.live) / paths.length,
    resident: (after.resident - before.resident) / paths.length,
    p50,
    p99,
    ...rate,
  }
}

/** Appends to the record, as a worker does, at a steady pace; each event carries the time at which its append began. */
async function appendPaced({ deps }: Platform, sessions: BenchSession[], clients: Clients): Promise<void> {
  const startedAt = performance.now()
  const appends: Promise<unknown>[] = []
  const before = clients.received()
  let count = 0
  const total = (EVENTS_PER_SECOND * PACED_MS) / 1000
  while (count < total) {
    const due = Math.min(total, Math.floor(((performance.now() - startedAt) * EVENTS_PER_SECOND) / 1000))
    for (; count < due; count++) {
      const session = sessions[count % sessions.length] as BenchSession
      const delta = `${performance.timeOrigin + performance.now()} ${TEXT}`
      const event = {
        type: 'output.message.delta' as const,
        step: 'reason:1',
        execId: session.execId,
        data: { delta },
        parts: { accumulated: delta },
      }
      appends.push(appendEvents(deps, { sessionId: session.id, turnId: session.turnId }, [event]))
    }
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await Promise.all(appends)
  await clients.until(before + total * STREAMS_PER_SESSION, 30_000)
}

/** Rings for events without recording them, as fast as they arrive: what is measured is the relay alone. */
async function publishAll({ deps }: Platform, child: Child, sessions: BenchSession[], clients: Clients) {
  const cpuBefore = await child.ask<NodeJS.CpuUsage>('cpu')
  const before = clients.received()
  const startedAt = performance.now()
  let published = 0
  while (performance.now() - startedAt < RATE_MS) {
    const delivered = (clients.received() - before) / STREAMS_PER_SESSION
    for (let room = WINDOW - (published - delivered); room > 0; room--) {
      const session = sessions[published % sessions.length] as BenchSession
      const sequence = Math.floor(published / sessions.length) + 1
      publishEvents(deps, session.id, session.turnId, [createEvent(deps, session, sequence)])
      published++
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  await clients.until(before + published * STREAMS_PER_SESSION, 30_000)
  const elapsedMs = performance.now() - startedAt
  const cpu = await child.ask<NodeJS.CpuUsage>('cpu')
  const delivered = published * STREAMS_PER_SESSION
  return {
    perSecond: (delivered * 1000) / elapsedMs,
    cpuPerEvent: (cpu.user + cpu.system - cpuBefore.user - cpuBefore.system) / delivered,
  }
}

function createEvent(deps: Platform['deps'], { id, turnId }: BenchSession, sequence: number): WireEvent {
  const turn = toId('turn', turnId)
  return {
    id: deps.eventIds.encode(id, sequence, Date.now()),
    type: 'output.message.delta',
    ts: new Date().toISOString(),
    session_id: toId('session', id),
    sequence,
    context: { turn_id: turn, trace_id: turn },
    data: { turn_id: turn, delta: TEXT, accumulated: TEXT.repeat(3) },
  }
}
