import { compactionEndpoints } from '../../contract/compaction.ts'
import type { Deps } from '../../domain/deps.ts'
import { compactSession, waitForCompaction } from '../../domain/messages/compact.ts'
import { requireLiving } from '../auth/authenticate.ts'
import { type Handle, reply } from '../http/handle.ts'
import { whileHeld } from '../http/held-wait.ts'
import type { SseStreams } from '../http/sse.ts'

/** Time for which a compaction is waited for by default. */
const WAIT_SECONDS = 60

export function compactionRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  handle(compactionEndpoints.compact, async ({ actor, credential, params, query, body, ctx }) => {
    const held = { organizationId: actor.organizationId, ms: (query.wait ?? WAIT_SECONDS) * 1000 }
    const { hasEnded, ...compaction } = await whileHeld(ctx, streams, held, async (signal) =>
      waitForCompaction(deps, actor, await compactSession(deps, actor, params.session_id, body), signal),
    )
    await requireLiving(deps, credential)
    return reply(hasEnded ? 200 : 202, compaction)
  })
}
