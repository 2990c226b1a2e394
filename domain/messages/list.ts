import type { SessionId } from '../../contract/kit/ids.ts'
import type { Message } from '../../contract/messages.ts'
import { readMessages } from '../conversation/list-messages.ts'
import type { Actor } from '../kit/actor.ts'
import type { Pages } from '../kit/lists.ts'
import { requireSession } from '../kit/session-scope.ts'
import type { Deps } from '../turns/deps.ts'

/** Lists a session's messages. Throws `not_found`, also when the session is deleted while it lists. */
export async function listMessages(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  page: { order: 'asc' | 'desc'; limit?: number | undefined; offset: number },
): Promise<Pages<Message>> {
  const session = await requireSession(deps, actor, sessionId)
  return readMessages(deps, session.id, page)
}
