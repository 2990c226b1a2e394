import type { WireEvent } from '../../../contract/events.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { publishEvents } from '../live/live-stream.ts'
import { type Appended, type NewEvent, recordEvents, recordEventsOf, type Writer } from './append.ts'

/** Session whose record no one else can change until the transaction ends. */
export type LockedSession = {
  id: string
  agentId: string | null
  db: Prisma.TransactionClient
  /** Appends like `appendEvents`, but publishes the events after the commit. */
  append(turnId: string, events: NewEvent[], attempt?: Writer['attempt']): Promise<Appended>
  /** Appends events of many turns, in their order, and publishes them after the commit. */
  appendOf(turns: { turnId: string; events: NewEvent[] }[]): Promise<Appended[]>
  /** Publishes events that were recorded by other means, together with the appended ones. */
  publish(turnId: string, events: WireEvent[]): void
}

const TIMEOUT_MS = 15_000
const MAX_WAIT_MS = 5_000

/**
 * Runs `work` in a transaction that locks the session, as every append does. For decisions that need an unchanging
 * record. Returns undefined when the organization has no such session.
 */
export const withLockedSession = <T>(
  deps: Deps,
  where: { organizationId: string; sessionId: string },
  work: (session: LockedSession) => Promise<T>,
): Promise<T | undefined> => deps.events.mutex(where.sessionId, () => runLocked(deps, where, work))

async function runLocked<T>(
  deps: Deps,
  where: { organizationId: string; sessionId: string },
  work: (session: LockedSession) => Promise<T>,
): Promise<T | undefined> {
  const published: [turnId: string, events: WireEvent[]][] = []
  const result = await deps.db.$transaction(
    async (db) => {
      const rows = await db.$queryRaw<{ agentId: string | null }[]>`
        SELECT agent_id AS "agentId" FROM sessions
        WHERE id = ${where.sessionId}::uuid AND organization_id = ${where.organizationId}::uuid FOR NO KEY UPDATE`
      const row = rows[0]
      if (row === undefined) return undefined
      return work({
        ...row,
        id: where.sessionId,
        db,
        publish: (turnId, events) => void published.push([turnId, events]),
        append: async (turnId, events, attempt) => {
          const writer = { sessionId: where.sessionId, turnId, ...(attempt && { attempt }) }
          const appended = await recordEvents(deps, db, writer, events)
          if (appended.outcome === 'appended') published.push([turnId, appended.events])
          return appended
        },
        appendOf: async (turns) => {
          const appended = await recordEventsOf(deps, db, where.sessionId, turns)
          for (const [index, { turnId }] of turns.entries()) {
            const one = appended[index]
            if (one?.outcome === 'appended') published.push([turnId, one.events])
          }
          return appended
        },
      })
    },
    { timeout: TIMEOUT_MS, maxWait: MAX_WAIT_MS },
  )
  for (const [turnId, events] of published) publishEvents(deps, where.sessionId, turnId, events)
  return result
}
