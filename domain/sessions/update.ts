import type { SessionId } from '../../contract/ids.ts'
import type { Session, UpdateSessionRequest } from '../../contract/sessions.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { notFound } from '../errors.ts'
import { getSession } from './read.ts'

/** Changes the given fields in one statement, so that no concurrent change is lost. Throws `not_found`. */
export async function patchSession(
  deps: Deps,
  actor: Actor,
  id: SessionId,
  input: UpdateSessionRequest,
): Promise<Session> {
  const { count } = await deps.db.session.updateMany({
    where: { id, organizationId: actor.organizationId },
    data: { title: input.title ?? undefined, tags: input.tags ?? undefined },
  })
  if (count === 0) throw notFound('Session')
  return getSession(deps, actor, id)
}
