import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { withPool } from '../../../platform/postgres/migrate.ts'
import { connectForLease } from '../../../worker/lease-connection.ts'

/** Encodes a message of Postgres's protocol. */
function message(type: string, body: string): Buffer {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, Buffer.from(body, 'latin1')])
}

const AUTHENTICATED = message('R', '\0\0\0\0')
const READY = message('Z', 'I')
const ENDS = message('E', 'SFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0')

/** A Postgres that dies as soon as it is ready: both messages come together. */
let server: Server
let url: string
beforeAll(async () => {
  server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.concat([AUTHENTICATED, READY, ENDS])))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `postgres://user@127.0.0.1:${(server.address() as AddressInfo).port}/database`
})
afterAll(() => server.close())

describe('a connection that breaks as soon as it is there', () => {
  it.each([
    ['a statement of the start', () => withPool(url, (pool) => pool.query('SELECT 1'))],
    [
      'a script of a migration',
      () =>
        withPool(url, async (pool) => {
          const client = await pool.connect()
          await client.query('SELECT 1').finally(() => client.release(true))
        }),
    ],
    [
      'the renewal of the lease',
      () => {
        const lease = connectForLease({ DATABASE_URL: url }, 1)
        return lease.renew().finally(() => lease.close())
      },
    ],
  ])('fails %s, and not the process', async (_, work) => {
    await expect(work()).rejects.toThrow(/connection/i)
  })
})
