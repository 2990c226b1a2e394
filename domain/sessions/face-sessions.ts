import type { FaceName } from '../../contract/faces.ts'
import type { AgentId, SessionId } from '../../contract/kit/ids.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { asUuid, newUuid } from '../kit/ids.ts'
import { insertSession } from './create.ts'

/** Conversation as a face's client names it: by an id that is the client's own. */
export type ExternalSession = { face: FaceName; agentId: AgentId; externalId: string }

/** Returns the session of a conversation; undefined if it has none. */
export async function findSessionOf(
  deps: Deps,
  { organizationId }: Actor,
  external: ExternalSession,
): Promise<SessionId | undefined> {
  const row = await deps.db.faceSession.findUnique({
    where: { organizationId_face_agentId_externalId: { organizationId, ...external } },
    select: { sessionId: true },
  })
  return row === null ? undefined : asUuid(row.sessionId)
}

/** Error that rolls back a session whose conversation has got one from another request meanwhile. */
class AlreadyKnown extends Error {}

/**
 * Returns the session of a conversation, which is created on first use: the same one for all requests, also concurrent
 * ones, until it is deleted. Throws `invalid` for an agent that cannot have sessions.
 */
export async function sessionOf(deps: Deps, actor: Actor, external: ExternalSession): Promise<SessionId> {
  const known = await findSessionOf(deps, actor, external)
  if (known !== undefined) return known
  const sessionId = asUuid<'session'>(newUuid())
  const row = { organizationId: actor.organizationId, ...external, sessionId }
  try {
    await insertSession(deps, actor, sessionId, { agent_id: external.agentId }, async (db) => {
      const { count } = await db.faceSession.createMany({ data: [row], skipDuplicates: true })
      if (count === 0) throw new AlreadyKnown()
    })
    return sessionId
  } catch (error) {
    if (!(error instanceof AlreadyKnown)) throw error
    return sessionOf(deps, actor, external)
  }
}
