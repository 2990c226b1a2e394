import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Redis } from 'ioredis'
import { freePorts } from '../../../dev/services/index.ts'
import { createLog } from '../../../platform/log.ts'
import { type RedisSettings, redisConnector } from '../../../platform/redis.ts'
import {
  AUTHORITY,
  EXPIRED_CERTIFICATE,
  OTHER_HOST_CERTIFICATE,
  SERVER_CERTIFICATE,
  SERVER_KEY,
} from '../../support/certificates.ts'
import { waitFor } from '../../support/http.ts'
import { makeRedis, type RedisServer } from '../../support/redis-servers.ts'
import { UNTRUSTED } from '../../support/untrusted-certificate.ts'

const LOGIN = { username: 'agents', password: 'p@ss/word' }
const ADMIN = { username: 'admin', password: 'all' }
const ENCODED = 'agents:p%40ss%2Fword'
/** The rights of docs/operations.md. */
const RIGHTS = [
  '~agent-sessions:*',
  '+xadd',
  '+xread',
  '+xrevrange',
  '+ping',
  '+info',
  '+@scripting',
  '+set',
  '+incrby',
  '+pttl',
  '+expire',
]

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'agent-sessions-redis-tls-'))
  const files = { 'ca.crt': AUTHORITY, 'other.crt': UNTRUSTED.cert, 'server.key': SERVER_KEY }
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(folder, name), text)
})
afterAll(() => rm(folder, { recursive: true }))

const servers: RedisServer[] = []
afterEach(async () => {
  for (const server of servers.splice(0).reverse()) {
    await server.stop()
    await server.remove()
  }
})

async function start(...of: Parameters<typeof makeRedis>): Promise<RedisServer> {
  const server = await makeRedis(...of)
  servers.push(server)
  await server.start()
  return server
}

/** Starts a server that only speaks TLS and knows one user. */
async function startWithTls(certificate: string, more: string[][] = [], rights: string[] = []): Promise<RedisServer> {
  const [port = 0] = await freePorts(1)
  const file = (name: string) => path.join(folder, name)
  await writeFile(file('server.crt'), certificate)
  const settings = [
    ['port', '0'],
    ['tls-port', `${port}`],
    ['tls-cert-file', file('server.crt')],
    ['tls-key-file', file('server.key')],
    ['tls-ca-cert-file', file('ca.crt')],
    ['tls-auth-clients', 'no'],
    ['user', 'default', 'off'],
    ['user', LOGIN.username, 'on', `>${LOGIN.password}`, ...RIGHTS, ...rights],
    ['user', ADMIN.username, 'on', `>${ADMIN.password}`, '~*', '+@all'],
    ...more,
  ]
  return start(port, settings, { ...ADMIN, tls: { rejectUnauthorized: false } })
}

/** Tells "ok" when both kinds of connection work, or why they do not. */
async function connect(settings: RedisSettings): Promise<string> {
  const warnings: string[] = []
  const log = createLog('warn', 'test', { write: (line) => void warnings.push(JSON.parse(line).err) })
  const connector = redisConnector(settings)
  const clients = [connector.connect(log), ...connector.connectReaders(log, 1)]
  try {
    await waitFor(async () => warnings.length > 0 || clients.every(({ status }) => status === 'ready'), 'Redis')
    if (warnings[0] !== undefined) return warnings[0]
    for (const client of clients) {
      await client.xadd('agent-sessions:relay:0', '*', 'a', 'b')
      await client.call('XREAD', 'COUNT', 1, 'BLOCK', 100, 'STREAMS', 'agent-sessions:relay:0', '0-0')
    }
    return 'ok'
  } catch (error) {
    return (error as Error).message
  } finally {
    for (const client of clients) client.disconnect()
  }
}

const file = (name: string) => path.join(folder, name)

describe('a Redis with TLS and a user', () => {
  it('is reached with its authority and the login, and a wrong setting has a sentence', async () => {
    const { port } = await startWithTls(SERVER_CERTIFICATE)
    const REDIS_URL = `rediss://${ENCODED}@127.0.0.1:${port}`
    const notTrusted =
      /^REDIS_URL: no trusted authority signed the server's certificate \(\w+\): name its authority in REDIS_CA_FILE$/
    expect(await connect({ REDIS_URL, REDIS_CA_FILE: file('ca.crt') })).toBe('ok')
    expect(await connect({ REDIS_URL })).toMatch(notTrusted)
    expect(await connect({ REDIS_URL, REDIS_CA_FILE: file('other.crt') })).toMatch(notTrusted)
    expect(
      await connect({ REDIS_URL: `rediss://agents:wrong@127.0.0.1:${port}`, REDIS_CA_FILE: file('ca.crt') }),
    ).toMatch(/WRONGPASS/)
  })

  it.each([
    [OTHER_HOST_CERTIFICATE, "REDIS_URL: the server's certificate is for DNS:db.example.com, not for 127.0.0.1"],
    [EXPIRED_CERTIFICATE, "REDIS_URL: the server's certificate has expired"],
  ])('is refused with a wrong certificate', async (certificate, sentence) => {
    const { port } = await startWithTls(certificate)
    const REDIS_URL = `rediss://${ENCODED}@127.0.0.1:${port}`
    expect(await connect({ REDIS_URL, REDIS_CA_FILE: file('ca.crt') })).toBe(sentence)
  })

  it('leaves the process alone when a socket has more than one error', async () => {
    const { port } = await startWithTls(OTHER_HOST_CERTIFICATE)
    const settings = { REDIS_URL: `rediss://${ENCODED}@127.0.0.1:${port}`, REDIS_CA_FILE: file('ca.crt') }
    const log = createLog('silent', 'test', { write: () => {} })
    const client = redisConnector(settings).connect(log) as Redis
    const failed = new Promise<Redis['stream']>((resolve) => client.once('error', () => resolve(client.stream)))
    const stream = await failed
    expect(stream.emit('error', new Error('tlsv1 alert decode error'))).toBe(true)
    client.disconnect()
  })
})

describe('a Redis Cluster with TLS and a user', () => {
  it('is reached by the name of a node, and a wrong setting has a sentence', async () => {
    const [bus] = await freePorts(1)
    const settings = [
      ['cluster-enabled', 'yes'],
      ['cluster-port', `${bus}`],
      ['cluster-announce-ip', '127.0.0.1'],
      ['tls-cluster', 'yes'],
    ]
    const { port, ask } = await startWithTls(SERVER_CERTIFICATE, settings, ['+cluster|slots', '+cluster|info'])
    const REDIS_URL = `rediss://${ENCODED}@localhost:${port}`
    const common = { REDIS_URL, REDIS_CLUSTER: true, REDIS_CA_FILE: file('ca.crt') }
    expect(await connect(common)).toBe('the cluster is not ready')
    await ask((admin) => admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383))
    await waitFor(async () => /state:ok/.test(`${await ask((admin) => admin.cluster('INFO'))}`), 'the slots')
    expect(await connect(common)).toBe('ok')
    expect(await connect({ ...common, REDIS_CA_FILE: file('other.crt') })).toMatch(/^REDIS_URL: no trusted authority /)
    expect(await connect({ ...common, REDIS_URL: `rediss://agents:no@localhost:${port}` })).toMatch(/WRONGPASS/)
  })
})

describe('a Redis behind Sentinel', () => {
  it('is found by its name', async () => {
    const [port = 0, sentinelPort = 0] = await freePorts(2)
    await start(
      port,
      [
        ['port', `${port}`],
        ['requirepass', 'secret'],
      ],
      { password: 'secret' },
    )
    const sentinel = await makeRedis(
      sentinelPort,
      [
        ['port', `${sentinelPort}`],
        ['requirepass', 'watch'],
      ],
      { password: 'watch' },
      true,
    )
    servers.push(sentinel)
    await sentinel.start()
    await sentinel.ask(async (admin) => {
      await admin.call('SENTINEL', 'MONITOR', 'main', '127.0.0.1', port, 1)
      await admin.call('SENTINEL', 'SET', 'main', 'auth-pass', 'secret')
    })
    const settings = { REDIS_URL: `redis://:secret@127.0.0.1:${sentinelPort}`, REDIS_SENTINEL_NAME: 'main' }
    expect(await connect({ ...settings, REDIS_SENTINEL_PASSWORD: 'watch' })).toBe('ok')
    expect(await connect({ ...settings, REDIS_SENTINEL_PASSWORD: 'watch', REDIS_SENTINEL_NAME: 'other' })).not.toBe(
      'ok',
    )
  })
})

describe('settings of Redis', () => {
  it.each([
    [{ REDIS_URL: 'redis://a:1,b:2' }, 'REDIS_URL: several hosts need REDIS_CLUSTER or REDIS_SENTINEL_NAME'],
    [
      { REDIS_URL: 'redis://a:x,b:2', REDIS_CLUSTER: true },
      'REDIS_URL: must be hosts such as redis://user:password@host:6379,host:6379',
    ],
    [{ REDIS_URL: 'rediss://a:1', REDIS_CA_FILE: '/none' }, 'REDIS_CA_FILE: /none cannot be read (ENOENT)'],
  ])('that are wrong have a sentence: %j', (settings, sentence) => {
    expect(() => redisConnector(settings)).toThrow(sentence)
  })

  it('name a file only with TLS', () => {
    const settings = { REDIS_URL: 'redis://a:1', REDIS_CA_FILE: file('ca.crt') }
    expect(() => redisConnector(settings)).toThrow('REDIS_CA_FILE: is for TLS, so REDIS_URL must begin with rediss://')
  })
})
