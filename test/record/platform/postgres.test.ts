import { type AddressInfo, createServer } from 'node:net'
import { createLog } from '../../../platform/log.ts'
import { connectPostgres, type Postgres } from '../../../platform/postgres/postgres.ts'
import { cloneDatabase } from '../../support/database.ts'
import { waitFor } from '../../support/http.ts'
import { type Proxy as ServerProxy, startProxy } from '../../support/proxy.ts'

const CONNECTIONS = 3
/** Bytes of AuthenticationOk and ReadyForQuery. */
const LOGGED_IN = Buffer.from('520000000800000000' + '5a0000000549', 'hex')

let proxy: ServerProxy
let url: string
let postgres: Postgres
beforeAll(async () => {
  const database = await cloneDatabase()
  const address = new URL(database.url)
  proxy = await startProxy(address.host)
  address.host = proxy.address
  url = address.href
  const config = { DATABASE_URL: url, DATABASE_POOL_SIZE: CONNECTIONS }
  postgres = connectPostgres(config, createLog('silent', 'test'), { silentMs: 3000 })
})
afterAll(async () => {
  await postgres.close()
  await proxy.close()
})

const ask = () => postgres.db.$queryRaw`SELECT 1 AS one`
const askInTransaction = () => postgres.db.$transaction(async (db) => db.$queryRaw`SELECT 1 AS one`)

describe('connections to a Postgres that stopped responding', () => {
  it.each([
    ['statements', ask],
    ['transactions', askInTransaction],
  ])('are given up and replaced: %s', async (_, work) => {
    await Promise.all(Array.from({ length: CONNECTIONS }, ask))
    proxy.freeze()
    const stuck = await Promise.allSettled(Array.from({ length: CONNECTIONS }, work))
    expect(stuck.map(({ status }) => status)).toEqual(Array(CONNECTIONS).fill('rejected'))
    expect(await Promise.all(Array.from({ length: CONNECTIONS }, work))).toEqual(Array(CONNECTIONS).fill([{ one: 1 }]))
  })

  it('are given up in seconds when Postgres runs no statement on them', async () => {
    const config = { DATABASE_URL: url, DATABASE_POOL_SIZE: CONNECTIONS }
    const { db, close } = connectPostgres(config, createLog('silent', 'test'), { silentMs: 60_000 })
    await Promise.all(Array.from({ length: CONNECTIONS }, () => db.$queryRaw`SELECT 1 AS one`))
    const sleeping = db.$queryRaw`SELECT pg_sleep(3)::text AS slept`
    const isAsleep = () =>
      db.$queryRaw<object[]>`SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()`
    await waitFor(async () => (await isAsleep()).length > 0, 'the statement to run')
    proxy.freeze()
    // Two connections are idle. A statement is lost on the way on one, and the other one is closed with it.
    await expect(db.$queryRaw`SELECT 1 AS one`).rejects.toMatchObject({ name: 'PostgresUnavailable' })
    expect(await db.$queryRaw`SELECT 1 AS one`).toEqual([{ one: 1 }])
    expect(await sleeping).toEqual([{ slept: '' }])
    await close()
  })

  it.concurrent('are given up when nothing follows the login', async () => {
    const mute = createServer((socket) => socket.on('error', () => {}).once('data', () => socket.write(LOGGED_IN)))
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
    const { port } = mute.address() as AddressInfo
    const config = { DATABASE_URL: `postgres://nobody@127.0.0.1:${port}/none`, DATABASE_POOL_SIZE: 1 }
    const { db, close } = connectPostgres(config, createLog('silent', 'test'), { silentMs: 3000 })
    await expect(db.$queryRaw`SELECT 1 AS one`).rejects.toThrow()
    await expect(db.$queryRaw`SELECT 1 AS one`).rejects.toThrow()
    await close()
    mute.close()
  })

  it('are not given up while a statement is slow', async () => {
    expect(await postgres.db.$queryRaw`SELECT pg_sleep(2)::text AS slept`).toEqual([{ slept: '' }])
  })
})
