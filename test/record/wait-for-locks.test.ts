import { waitForLocks } from '../../domain/kit/wait-for-locks.ts'
import { createLog } from '../../platform/log.ts'
import { connectPostgres, type Postgres } from '../../platform/postgres/postgres.ts'
import { cloneDatabase } from '../support/database.ts'

let postgres: Postgres
beforeAll(async () => {
  const { url } = await cloneDatabase()
  postgres = connectPostgres({ DATABASE_URL: url, DATABASE_POOL_SIZE: 1 }, createLog('silent', 'test'))
})
afterAll(() => postgres.close())

const raise = (what: string) => `DO $$ BEGIN RAISE EXCEPTION ${what}; END $$`

describe('a change', () => {
  it.each<[string, (statement: string) => Promise<unknown>]>([
    ['by itself', (statement) => postgres.db.$executeRawUnsafe(statement)],
    ['in a transaction', (statement) => postgres.db.$transaction((tx) => tx.$executeRawUnsafe(statement))],
  ])('%s is made again when it was locked out, and not because its error names that code', async (_, run) => {
    let tries = 0
    const locked = async () => (++tries < 3 ? run(raise("USING ERRCODE = 'lock_not_available'")) : 'changed')
    expect(await waitForLocks(locked, 'It is')).toBe('changed')
    const failing = jest.fn(() => run(raise("'no row 55P03'")))
    await expect(waitForLocks(failing, 'It is')).rejects.toThrow('55P03')
    expect(failing).toHaveBeenCalledTimes(1)
  })
})
