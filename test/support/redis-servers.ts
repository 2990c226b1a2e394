import { mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Redis, type RedisOptions } from 'ioredis'
import { freePorts, type Service } from '../../dev/services/index.ts'
import { startProcess } from '../../dev/services/process.ts'
import { waitFor } from './http.ts'

/** Server with settings of its own. A restart keeps its address and its data. */
export type RedisServer = {
  port: number
  start(): Promise<void>
  stop(): Promise<void>
  kill(): Promise<void>
  /** Asks the server by a connection of its own. */
  ask<T>(work: (admin: Redis) => Promise<T>): Promise<T>
  remove(): Promise<void>
}

/** Makes a server with the settings, in an order of words as in redis.conf, and the options to reach it. */
export async function makeRedis(
  port: number,
  settings: string[][],
  options: RedisOptions = {},
  isSentinel = false,
): Promise<RedisServer> {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'agent-sessions-redis-'))
  const args = [['bind', '127.0.0.1'], ['dir', dataDir], ['save', ''], ...settings]
  // Sentinel writes into its file.
  const file = isSentinel ? [path.join(dataDir, 'sentinel.conf')] : []
  for (const name of file) writeFileSync(name, '')
  let running: Service | undefined
  const ask: RedisServer['ask'] = async (work) => {
    const admin = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: null, ...options })
    // ioredis listens to the first error of a socket only.
    admin.on('error', () => admin.stream?.on('error', () => {}))
    try {
      await admin.connect()
      return await work(admin)
    } finally {
      admin.disconnect()
    }
  }
  return {
    port,
    ask,
    start: async () => {
      running = await startProcess({
        name: 'redis',
        command: 'redis-server',
        args: [
          ...file,
          ...args.flatMap(([name = '', ...words]) => [`--${name}`, ...words]),
          ...(isSentinel ? ['--sentinel'] : []),
        ],
        dataDir,
        url: '',
        stopSignal: 'SIGTERM',
        log: () => {},
        probe: () => ask(async (admin) => void (await admin.ping())),
      })
    },
    stop: async () => running?.stop(),
    kill: async () => running?.kill(),
    remove: () => rm(dataDir, { recursive: true, force: true }),
  }
}

const SLOTS = 16_384

/** Starts a cluster of three primaries without replicas, each with a third of the slots. */
export async function startCluster(): Promise<{ nodes: RedisServer[]; url: string; untilWhole(): Promise<void> }> {
  const ports = await freePorts(6)
  const nodes = await Promise.all(
    ports.slice(0, 3).map((port, index) =>
      makeRedis(port, [
        ['port', `${port}`],
        ['cluster-enabled', 'yes'],
        ['cluster-port', `${ports[index + 3]}`],
        ['cluster-node-timeout', '1000'],
      ]),
    ),
  )
  await Promise.all(nodes.map(({ start }) => start()))
  for (const [index, node] of nodes.entries()) {
    const [from, to] = [index, index + 1].map((third) => Math.floor((SLOTS * third) / 3))
    await node.ask(async (admin) => {
      await admin.call('CLUSTER', 'ADDSLOTSRANGE', from ?? 0, (to ?? 0) - 1)
      for (const [at, port] of ports.slice(0, 3).entries())
        await admin.call('CLUSTER', 'MEET', '127.0.0.1', port, ports[at + 3] ?? 0)
    })
  }
  const untilWhole = async () => {
    const states = () => Promise.all(nodes.map(({ ask }) => ask((admin) => admin.cluster('INFO'))))
    await waitFor(async () => (await states()).every((state) => /cluster_state:ok/.test(`${state}`)), 'the cluster')
  }
  await untilWhole()
  return { nodes, url: `redis://127.0.0.1:${ports[0]},127.0.0.1:${ports[1]}`, untilWhole }
}
