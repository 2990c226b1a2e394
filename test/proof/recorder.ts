import { setTimeout as sleep } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import pg from 'pg'
import { toId } from '../../domain/kit/ids.ts'

/** Notes what record and Temporal say of the unfinished turns, for a failure that does not come again. */
export type Recorder = {
  begin(): void
  /** States since `begin`, each with its time in seconds since the epoch. */
  lines(): string[]
  close(): Promise<void>
}

const LOOK_MS = 400
const LIMIT_MS = 500
const MAX_TURNS = 4
const MAX_STATES = 100

type Turn = { id: string; state: string }

const TURNS = `
  SELECT t.id, t.status || ' ' || coalesce(string_agg(
    s.step || ' of ' || coalesce(s.process::text, 'nobody') || ', fence ' || s.fence || ', claims ' || s.claims, '; ' ORDER BY s.step
  ), '') AS state
  FROM turns t LEFT JOIN turn_steps s ON s.turn_id = t.id
  WHERE t.finished_at IS NULL GROUP BY t.id ORDER BY t.created_at LIMIT ${MAX_TURNS}`
const PROCESSES = `
  SELECT string_agg(number || CASE WHEN seen_at > clock_timestamp() - interval '3 seconds' THEN ' lives' ELSE ' is dead' END, ', '
    ORDER BY number) AS state
  FROM processes WHERE seen_at > clock_timestamp() - interval '15 seconds'`

export function startRecorder(databaseUrl: string, temporal: string): Recorder {
  let states: string[] = []
  let isClosed = false
  const ask = async () => {
    const db = new pg.Client({
      connectionString: databaseUrl,
      connectionTimeoutMillis: LIMIT_MS,
      query_timeout: LIMIT_MS,
    })
    db.on('error', () => {})
    try {
      await db.connect()
      const turns = (await db.query<Turn>(TURNS)).rows
      const processes = (await db.query<{ state: string }>(PROCESSES)).rows[0]?.state
      const workflows = turns.length === 0 ? [] : await describeWorkflows(temporal, turns)
      return [...workflows, processes].join('\n  ')
    } finally {
      // A server that is away never says goodbye.
      void db.end().catch(() => {})
    }
  }
  const look = async () => {
    let latest = ''
    while (!isClosed) {
      const state = await ask().catch((error: Error) => `unknown: ${error.message}`)
      if (state !== latest) states = [...states.slice(1 - MAX_STATES), `${(Date.now() / 1000).toFixed(2)} ${state}`]
      latest = state
      await sleep(LOOK_MS)
    }
  }
  const looking = look()
  return {
    begin: () => {
      states = []
    },
    lines: () => states,
    close: async () => {
      isClosed = true
      await looking
    },
  }
}

async function describeWorkflows(address: string, turns: Turn[]): Promise<string[]> {
  const connection = await Connection.connect({ address, connectTimeout: LIMIT_MS })
  try {
    const { workflow } = new Client({ connection })
    const describe = async ({ id, state }: Turn) => {
      const { raw } = await workflow.getHandle(toId('turn', id)).describe()
      const { pendingWorkflowTask: task, pendingActivities: activities } = raw
      const open = (activities ?? []).map(
        ({ activityType, activityId, state, attempt, lastWorkerIdentity, lastStartedTime }) =>
          `${activityType?.name} ${activityId}: state ${state}, attempt ${attempt} by ${lastWorkerIdentity} at ${lastStartedTime?.seconds}`,
      )
      const ofTask = task ? [`task: state ${task.state}, attempt ${task.attempt} at ${task.startedTime?.seconds}`] : []
      return [`${id} ${state}`, ...ofTask, ...open].join(' | ')
    }
    return await connection.withDeadline(Date.now() + LIMIT_MS, () =>
      Promise.all(turns.map((turn) => describe(turn).catch((error) => `${turn.id} ${turn.state} | ${error.message}`))),
    )
  } finally {
    await connection.close()
  }
}
