import type { SessionId } from '../../contract/kit/ids.ts'
import type { Actor } from './actor.ts'
import type { Deps } from './deps.ts'
import { noSession } from './errors.ts'

/** Session whose data is read or written, in its expected organization. */
export type SessionScope = {
  organizationId: string
  sessionId: string
  /** Tool call that writes. Absent if a user does. */
  writer?: CallWriter
  /** Aborts waiting for other writers. */
  signal?: AbortSignal
}

/** Session and tool call that reads and writes its data. */
export type CallScope = Required<SessionScope>

/** Attempt of a writing tool call; see turn_steps in prisma/schema.prisma. */
export type CallWriter = { turnId: string; step: string; fence: number }

export const scopeOf = ({ organizationId }: Actor, sessionId: SessionId): SessionScope => ({
  organizationId,
  sessionId,
})

/** Error of a tool call that may no longer write: its turn is over, or a newer attempt has begun. */
export class WriterLost extends Error {
  override name = 'WriterLost'
  readonly outcome: 'turn_ended' | 'fenced' | 'session_gone'
  constructor(outcome: WriterLost['outcome']) {
    super(outcome)
    this.outcome = outcome
  }
}

/** Returns the id and last sequence of a session in the caller's organization. Throws `not_found`. */
export async function requireSession(
  deps: Deps,
  actor: Actor,
  id: SessionId,
): Promise<{ id: string; lastSequence: number }> {
  const row = await deps.db.session.findFirst({
    where: { id, organizationId: actor.organizationId },
    select: { id: true, lastSequence: true },
  })
  if (!row) throw noSession()
  return row
}
