import { setTimeout as sleep } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import pg from 'pg'
import type { RunningServices } from '../dev/services/index.ts'
import { print } from './report.ts'
import { addSession, forEach, say, type Tenant } from './tenant.ts'

const POLL_MS = 100
const CANCEL_MS = 120_000

/** Where an organization begins turns. */
export type TenantAgent = { tenant: Tenant; agentId: string }
export type Session = { tenant: Tenant; id: string }

/** Reads the record, and counts turns in Temporal. */
export type Ledger = {
  pool: pg.Pool
  /** Counts the unfinished turns: all, and the ones that have begun. */
  unfinished(): Promise<{ all: number; begun: number }>
  /** Counts the turns whose first step no activity has taken over yet. */
  early(): Promise<number>
  /** Counts the workflows of turns that Temporal runs. */
  workflows(): Promise<number>
  close(): Promise<void>
}

export async function openLedger({ databaseUrl, temporalAddress }: RunningServices): Promise<Ledger> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
  const connection = await Connection.connect({ address: temporalAddress })
  const client = new Client({ connection })
  return {
    pool,
    unfinished: async () => {
      const { rows } = await pool.query(
        `SELECT count(*)::integer AS all, count(started_at)::integer AS begun FROM turns WHERE finished_at IS NULL`,
      )
      return rows[0]
    },
    early: async () => {
      const { rows } = await pool.query(
        `SELECT count(*)::integer AS count FROM turn_steps s JOIN turns t ON t.id = s.turn_id
        WHERE t.finished_at IS NULL AND s.fence < 0`,
      )
      return rows[0].count
    },
    workflows: async () => (await client.workflow.count("ExecutionStatus = 'Running' AND WorkflowType = 'turn'")).count,
    close: async () => {
      await pool.end()
      await connection.close()
    },
  }
}

/** Creates `count` sessions, for each place in turn. */
export async function addSessions(places: TenantAgent[], count: number, mostMs?: number): Promise<Session[]> {
  const items = Array.from({ length: count }, (_, index) => places[index % places.length] as TenantAgent)
  const { done, failed } = await forEach(
    items,
    async ({ tenant, agentId }) => ({ tenant, id: await addSession(tenant, agentId) }),
    mostMs,
  )
  reportFailed(failed)
  return done
}

/** Sends a message to each session. Returns the number of accepted messages. */
export async function sayToAll(sessions: Session[], mostMs?: number): Promise<number> {
  const { done, failed } = await forEach(sessions, ({ tenant, id }) => say(tenant, id), mostMs)
  reportFailed(failed)
  return done.length
}

/** Waits until that many turns have begun, or `mostMs` have passed. Returns how many. */
export async function waitUntilBegun(record: Ledger, count: number, mostMs: number): Promise<number> {
  await until(async () => (await record.unfinished()).begun >= count, mostMs)
  return (await record.unfinished()).begun
}

/** Waits until activities wait for all turns that have begun. Returns how long that has taken. */
export async function waitUntilAttended(record: Ledger): Promise<number> {
  const startedAt = performance.now()
  const isMet = await until(async () => (await record.early()) === 0, CANCEL_MS)
  return isMet ? performance.now() - startedAt : Infinity
}

/** Times from the first request: until all are answered, the record has all ends, and Temporal has closed all workflows. */
export type Cancelled = { answeredMs: number; endedMs: number; closedMs: number }

export async function cancelAll(record: Ledger, sessions: Session[]): Promise<Cancelled> {
  const startedAt = performance.now()
  const isEnded = async () => (await record.unfinished()).all === 0
  const ended = until(isEnded, CANCEL_MS).then((isMet) => (isMet ? performance.now() - startedAt : Infinity))
  const cancelling = forEach(sessions, ({ tenant, id }) => tenant.ask('POST', `/v1/sessions/${id}/cancel`))
  reportFailed((await cancelling).failed)
  const answeredMs = performance.now() - startedAt
  const isClosed = await until(async () => (await record.workflows()) === 0, CANCEL_MS)
  return { answeredMs, endedMs: await ended, closedMs: isClosed ? performance.now() - startedAt : Infinity }
}

async function until(isMet: () => Promise<boolean>, mostMs: number): Promise<boolean> {
  for (const end = performance.now() + mostMs; performance.now() < end; await sleep(POLL_MS)) {
    if (await isMet()) return true
  }
  return false
}

export function reportFailed(failed: Map<string, number>): void {
  for (const [reason, times] of [...failed].slice(0, 3)) print(`  ${times} times: ${reason.slice(0, 200)}`)
}
