import type { WireEvent } from '../../../contract/events.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { publishEvents } from '../live/live-stream.ts'
import { type Appended, type NewEvent, recordEvents, recordEventsOf, type TurnEvents, type Writer } from './append.ts'

/** Sessions whose records no one else can change until the transaction ends. */
export type LockedSessions = {
  sessions: { id: string; agentId: string | null }[]
  db: Prisma.TransactionClient
  /** Appends events of many turns, in their order, and publishes them after the commit. */
  appendOf(turns: TurnEvents[]): Promise<Appended[]>
}

/** One such session. */
export type LockedSession = LockedSessions & {
  id: string
  agentId: string | null
  /** Appends like `appendEvents`, but publishes the events after the commit. */
  append(turnId: string, events: NewEvent[], attempt?: Writer['attempt']): Promise<Appended>
  /** Publishes events that were recorded by other means, together with the appended ones. */
  publish(turnId: string, events: WireEvent[]): void
}

type Published = [place: { sessionId: string; turnId: string }, events: WireEvent[]][]

const TIMEOUT_MS = 15_000
/** Time between two statements after which Postgres ends a transaction: its process stands still, and others wait for its locks. */
export const LOCKED_IDLE_MS = 3000
const MAX_WAIT_MS = 5_000

/**
 * Runs `work` in a transaction that locks the session, as every append does. For decisions that need an unchanging
 * record. Returns undefined when the organization has no such session.
 */
export const withLockedSession = <T>(
  deps: Deps,
  { organizationId, sessionId }: { organizationId: string; sessionId: string },
  work: (session: LockedSession) => Promise<T>,
): Promise<T | undefined> =>
  deps.events.mutex(sessionId, () =>
    runLocked(deps, { organizationId, sessionIds: [sessionId] }, async (locked, published) => {
      const [session] = locked.sessions
      if (session === undefined) return undefined
      return work({
        ...locked,
        ...session,
        publish: (turnId, events) => void published.push([{ sessionId, turnId }, events]),
        append: async (turnId, events, attempt) => {
          const writer = { sessionId, turnId, ...(attempt && { attempt }) }
          const appended = await recordEvents(deps, locked.db, writer, events)
          if (appended.outcome === 'appended') published.push([writer, appended.events])
          return appended
        },
      })
    }),
  )

/**
 * Runs `work` in a transaction that locks the sessions that the organization has, in the order of their ids. It waits at
 * most `lockMs` for each lock, and then rejects.
 */
export const withLockedSessions = <T>(
  deps: Deps,
  where: { organizationId: string; sessionIds: string[]; lockMs: number },
  work: (sessions: LockedSessions) => Promise<T>,
): Promise<T> => runLocked(deps, where, work)

async function runLocked<T>(
  deps: Deps,
  { organizationId, sessionIds, lockMs }: { organizationId: string; sessionIds: string[]; lockMs?: number },
  work: (locked: LockedSessions, published: Published) => Promise<T>,
): Promise<T> {
  const published: Published = []
  const result = await deps.db.$transaction(
    async (db) => {
      if (lockMs !== undefined) await db.$queryRaw`SELECT set_config('lock_timeout', ${`${lockMs}`}, true)`
      const sessions = await db.$queryRaw<LockedSessions['sessions']>`
        SELECT id, agent_id AS "agentId"
        FROM sessions CROSS JOIN set_config('idle_in_transaction_session_timeout', ${`${LOCKED_IDLE_MS}`}, true)
        WHERE id = ANY (${sessionIds}::uuid[]) AND organization_id = ${organizationId}::uuid
        ORDER BY id FOR NO KEY UPDATE OF sessions`
      const appendOf = async (turns: TurnEvents[]) => {
        const appended = await recordEventsOf(deps, db, turns)
        for (const [index, place] of turns.entries()) {
          const one = appended[index]
          if (one?.outcome === 'appended') published.push([place, one.events])
        }
        return appended
      }
      return work({ sessions, db, appendOf }, published)
    },
    { timeout: TIMEOUT_MS, maxWait: MAX_WAIT_MS },
  )
  for (const [{ sessionId, turnId }, events] of published) publishEvents(deps, sessionId, turnId, events)
  return result
}
