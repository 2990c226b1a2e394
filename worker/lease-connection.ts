import pg from 'pg'
import { RENEW_LEASE } from '../domain/turns/run/lease-sql.ts'
import { processPlace } from '../lib/process-place.ts'
import { sleep } from '../lib/sleep.ts'
import { processName } from '../lib/worker-identity.ts'
import { type PostgresSettings, postgresOptions } from '../platform/postgres/connection.ts'

/** Time for connecting and the statement together. */
export const LEASE_LIMIT_MS = 1500

/**
 * Connection of its own for the lease of a process, made when it is first needed: neither a full pool nor a long statement
 * delays it. It loads little, because each thread has its own.
 */
export type LeaseConnection = {
  /** Rejects if Postgres does not answer in time. */
  probe(): Promise<void>
  /** Notes that this process lives: the steps that it has begun are left to it. Rejects if it was not noted in time. */
  renew(): Promise<void>
  close(): Promise<void>
}

/** `process` is the number of the process. */
export function connectForLease(database: PostgresSettings, process: number): LeaseConnection {
  const limits = { connectionTimeoutMillis: LEASE_LIMIT_MS, query_timeout: LEASE_LIMIT_MS, keepAlive: true }
  const pool = new pg.Pool({ ...postgresOptions(database), ...limits, max: 2 })
  pool.on('connect', (client) => client.on('error', () => {}))
  pool.on('error', () => {})
  return {
    probe: async () => void (await pool.query('SELECT 1')),
    renew: async () => {
      const over = new AbortController()
      const renewing = pool.query(RENEW_LEASE, [process, processPlace ?? null, processName])
      const late = sleep(LEASE_LIMIT_MS, over.signal).then(() => 'late' as const)
      const first = await Promise.race([renewing, late]).finally(() => over.abort())
      if (first !== 'late') return
      renewing.catch(() => {})
      throw new Error('Postgres has not answered in time')
    },
    close: async () => {
      // A connection that has died does not end by itself.
      const over = new AbortController()
      await Promise.race([pool.end(), sleep(LEASE_LIMIT_MS, over.signal)])
      over.abort()
    },
  }
}
