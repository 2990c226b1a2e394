import type { Connection } from './connection.ts'
import { type FollowOptions, follow } from './follow.ts'
import type { StreamedOrganizationEvent } from './generated/types.gen.ts'

export type OrganizationEventOptions = Pick<FollowOptions, 'onBegin'> & {
  /** Id of the last event that the caller has, or '0' for the oldest that is kept. Default: only what happens from now on. */
  after?: string
  types?: StreamedOrganizationEvent['type'][]
  /** Only events of this agent's sessions. */
  agent_id?: string
  /** Ends the iteration. */
  signal?: AbortSignal
  /** Called with false when a failure interrupts the events, and with true when they resume. */
  onConnected?: (isConnected: boolean) => void
}

/** Yields an organization's events. */
export function followEvents(
  connection: Connection,
  { after, types = [], agent_id, ...options }: OrganizationEventOptions = {},
): AsyncGenerator<StreamedOrganizationEvent, void, undefined> {
  const open = (last: string | undefined, signal: AbortSignal) => {
    const query = new URLSearchParams(agent_id === undefined ? {} : { agent_id })
    for (const type of types) if (type !== 'gap') query.append('types', type)
    if (last !== undefined) query.set('since_id', last)
    const init = { headers: { Accept: 'text/event-stream' }, signal }
    return connection.send(connection.request(`/v1/events/sse?${query}`, init))
  }
  return follow({ ...options, open, after, silenceMs: connection.silenceMs })
}
