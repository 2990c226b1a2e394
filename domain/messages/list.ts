import type { SessionId } from '../../contract/ids.ts'
import type { Message } from '../../contract/messages.ts'
import type { Actor } from '../actor.ts'
import { readMessages } from '../conversation/list-messages.ts'
import type { Deps } from '../deps.ts'
import type { Pages } from '../lists.ts'
import { requireSession } from '../sessions/read.ts'

/** Lists a session's messages. Throws `not_found`, also later when the session is deleted meanwhile. */
export async function listMessages(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  page: { order: 'asc' | 'desc'; limit?: number | undefined; offset: number },
): Promise<Pages<Message>> {
  const session = await requireSession(deps, actor, sessionId)
  return readMessages(deps, session.id, page)
}
