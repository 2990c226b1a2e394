import { organizationEventEndpoints } from '../../contract/organization-events.ts'
import type { Deps } from '../../domain/deps.ts'
import { createOrganizationFeed } from '../../domain/organization-events/feed.ts'
import { openEvents } from '../../domain/organization-events/read.ts'
import type { Handle } from '../http/handle.ts'
import type { SseStreams } from '../http/sse.ts'

export function organizationEventRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  const feed = createOrganizationFeed(deps)
  handle(organizationEventEndpoints.stream, async ({ actor, credential, query, ctx }) => {
    const { organizationId } = actor
    const sinceId = query.since_id ?? (ctx.get('Last-Event-ID') || undefined)
    const cursor = await openEvents(deps, organizationId, sinceId)
    await streams.serve(ctx, {
      organizationId,
      credential,
      kind: 'session',
      sessionId: undefined,
      startId: `${cursor.after}`,
      open: async (signal) => feed.follow(cursor, query, signal),
    })
    return undefined
  })
}
