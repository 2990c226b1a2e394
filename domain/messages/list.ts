import type { SessionId } from '../../contract/ids.ts'
import type { Message } from '../../contract/messages.ts'
import type { Actor } from '../actor.ts'
import { readMessages } from '../conversation/list-messages.ts'
import type { Deps } from '../deps.ts'
import { requireSession } from '../sessions/read.ts'

/** Pages of messages; throws `not_found` before the first. */
export async function listMessages(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  page: { order: 'asc' | 'desc'; limit?: number | undefined; offset: number },
): Promise<AsyncGenerator<Message[]>> {
  const session = await requireSession(deps, actor, sessionId)
  return readMessages(deps, session.id, page)
}
