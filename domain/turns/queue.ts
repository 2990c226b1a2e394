import type { Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { startTurnSoon } from './start.ts'
import type { StartedTurn } from './turn-workflows.ts'

/** The turn at the head of a session's queue if it still has to be started; null when another one runs or none waits. */
export async function nextTurn(db: Prisma.TransactionClient, sessionId: string): Promise<string | null> {
  const [next] = await db.$queryRaw<{ id: string | null }[]>`
    SELECT next_queued_turn(${sessionId}::uuid)::text AS id`
  return next?.id ?? null
}

/** Whoever ends a turn starts the next in the queue. */
export function startNext(deps: Deps, ended: StartedTurn, nextTurnId: string | null): void {
  const { organizationId, sessionId, agentId } = ended
  if (nextTurnId !== null) startTurnSoon(deps, { organizationId, sessionId, agentId, turnId: nextTurnId })
}

/** For a turn that an attempt ended which may have died before it could start the next. */
export async function startNextOf(deps: Deps, ended: StartedTurn): Promise<void> {
  startNext(deps, ended, await nextTurn(deps.db, ended.sessionId))
}
