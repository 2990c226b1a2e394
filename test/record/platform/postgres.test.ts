import { type AddressInfo, createServer } from 'node:net'
import { createLog } from '../../../platform/log.ts'
import { connectPostgres, type Postgres } from '../../../platform/postgres/postgres.ts'
import { cloneDatabase } from '../../support/database.ts'
import { type Proxy as ServerProxy, startProxy } from '../../support/proxy.ts'

const CONNECTIONS = 3
/** Bytes of AuthenticationOk and ReadyForQuery. */
const LOGGED_IN = Buffer.from('520000000800000000' + '5a0000000549', 'hex')

let proxy: ServerProxy
let postgres: Postgres
beforeAll(async () => {
  const database = await cloneDatabase()
  const url = new URL(database.url)
  proxy = await startProxy(url.host)
  url.host = proxy.address
  const config = { DATABASE_URL: url.href, DATABASE_POOL_SIZE: CONNECTIONS }
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
