import type { Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from './deps.ts'
import { startTurnSoon } from './start.ts'
import type { StartedTurn } from './turn-workflows.ts'

/** Returns the turn that is to be started next in a session. Null when it has started, or when the queue is empty. */
export async function nextTurn(db: Prisma.TransactionClient, sessionId: string): Promise<string | null> {
  const [next] = await db.$queryRaw<{ id: string | null }[]>`
    SELECT next_turn_to_start(${sessionId}::uuid)::text AS id`
  return next?.id ?? null
}

/** Starts the next turn in the queue, if any, after `ended`. `early` is for the caller that has ended it. */
export function startNext(deps: Deps, ended: StartedTurn, nextTurnId: string | null, when?: 'early'): void {
  const { organizationId, sessionId, agentId } = ended
  if (nextTurnId !== null) startTurnSoon(deps, { organizationId, sessionId, agentId, turnId: nextTurnId }, when)
}

/** Starts the turn after `ended`, because the attempt that ended it may have died before doing so. */
export async function startNextOf(deps: Deps, ended: StartedTurn): Promise<void> {
  startNext(deps, ended, await nextTurn(deps.db, ended.sessionId))
}
