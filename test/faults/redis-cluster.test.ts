import type { Context } from 'koa'
import { createLimit } from '../../api/auth/rate-limit.ts'
import { RELAY_STREAMS, relayKey } from '../../domain/events/live/live-entry.ts'
import { createSession, type Json, listEvents, waitFor } from '../support/http.ts'
import { type RedisServer, startCluster } from '../support/redis-servers.ts'
import { startService, type TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'
import { post } from '../support/turns.ts'

const SESSIONS = 24
/** Below the interval of the comparisons with the record, which find what does not come over Redis. */
const LIVE_MS = 4500

let cluster: Awaited<ReturnType<typeof startCluster>>
let service: TestService
/** An API process without a worker: all events come to it over Redis. */
let peer: Awaited<ReturnType<TestService['startPeer']>>
beforeAll(async () => {
  cluster = await startCluster()
  service = await startService({ environment: { REDIS_URL: cluster.url, REDIS_CLUSTER: 'true' } })
  peer = await service.startPeer()
  await waitFor(async () => clients().every(({ status }) => status === 'ready'), 'Redis')
})
afterAll(async () => {
  await service.stop()
  for (const node of cluster.nodes) {
    await node.stop()
    await node.remove()
  }
})

type Followed = { id: string; stream: OpenStream; delaysMs: number[] }

/** Opens the stream of a new session, and measures how late its events are. */
async function follow(): Promise<Followed> {
  const id = await createSession(service.url)
  const delaysMs: number[] = []
  const onFrame = ({ data }: { data?: Json }) => {
    if (data?.ts !== undefined) delaysMs.push(Date.now() - Date.parse(data.ts))
  }
  return { id, delaysMs, stream: await openStream(peer.url, `/v1/sessions/${id}/sse`, { onFrame }) }
}

const clients = () => [service, peer].map(({ platform }) => platform.deps.redis.client)

/** Runs a turn in each session, and checks that the streams have exactly what is recorded. */
async function runTurns(followed: Followed[]): Promise<void> {
  const answers = await Promise.all(followed.map(({ id }) => post(service.url, id, 'Hello', {}, '?wait=60')))
  expect(answers.map(({ body }) => body.turn?.status)).toEqual(followed.map(() => 'completed'))
  for (const { id, stream } of followed) {
    const recorded = await listEvents(service.url, id, '?limit=1000')
    await waitFor(async () => stream.events().length >= recorded.length, 'the events')
    expect(stream.events().map((event) => event.id)).toEqual(recorded.map((event) => event.id))
  }
}

const longest = (followed: Followed[]) => Math.max(...followed.flatMap(({ delaysMs }) => delaysMs.splice(0)))

describe('streams over a Redis Cluster', () => {
  it('are exact and live before, while and after a node is away', async () => {
    const followed = await Promise.all(Array.from({ length: SESSIONS }, follow))
    // Again, should the machine be busy with something else.
    const areLive = async () => {
      longest(followed)
      await runTurns(followed)
      return longest(followed) < LIVE_MS
    }
    await waitFor(areLive, 'events to come over Redis')

    const [node] = cluster.nodes as [RedisServer]
    await node.kill()
    await runTurns(followed)

    await node.start()
    await cluster.untilWhole()
    await waitFor(areLive, 'events to come over Redis again')
    for (const { stream } of followed) stream.close()
  })

  it('have a slot of their own, on all nodes', async () => {
    const keys = Array.from({ length: RELAY_STREAMS }, (_, index) => relayKey(service.config.REDIS_PREFIX, index))
    const slots = await Promise.all(
      keys.map((key) => cluster.nodes[1]?.ask((admin) => admin.cluster('KEYSLOT', key)) ?? -1),
    )
    expect(new Set(slots.map((slot) => Math.floor((slot * 3) / 16_384)))).toEqual(new Set([0, 1, 2]))
  })

  it('need less than four connections a stream', async () => {
    // Connections to a node that came back are closed after a while.
    await waitFor(async () => {
      const lists = await Promise.all(cluster.nodes.map(({ ask }) => ask((admin) => admin.client('LIST'))))
      const connections = lists
        .join('')
        .split('\n')
        .filter((line) => line !== '' && !line.includes('cmd=client'))
      return connections.length / 2 < 4 * RELAY_STREAMS
    }, 'less than four connections a stream')
  })
})

describe('limits of an address over a Redis Cluster', () => {
  it('are counted for all processes', async () => {
    const ctx = { ip: '192.0.2.1', app: { proxy: true }, get: () => '', append: () => {} } as unknown as Context
    const limits = [service.platform, peer.platform].map(({ deps }) => createLimit(deps, 'cluster', 9))
    for (const limit of limits) for (let call = 1; call <= 4; call++) await limit(ctx)
    await limits[0]?.(ctx)
    await expect(limits[1]?.(ctx)).rejects.toThrow('Too many attempts from this address')
  })
})
