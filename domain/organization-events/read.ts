import { GAP, type OrganizationEventType, type StreamedOrganizationEvent } from '../../contract/organization-events.ts'
import { type OrganizationEvent, Prisma } from '../../prisma/generated/client.ts'
import { invalid } from '../kit/errors.ts'
import type { Deps } from '../turns/deps.ts'
import { presentOrganizationEvents } from './present.ts'

export type OrganizationEventFilter = {
  types?: OrganizationEventType[] | undefined
  /** Uuid. */
  agent_id?: string | undefined
}

/** Event as a stream sends it, with what filters compare. */
export type StreamedEvent = {
  sequence: bigint
  type: StreamedOrganizationEvent['type']
  agentId: string | null
  id: string
  line: string
}

/** Events after one sequence, up to and including `through`. */
export type EventPage = { after: bigint; through: bigint; head: bigint; events: StreamedEvent[] }

const PAGE = 200
/** Number of sequences that one statement looks at, however few of them fit the filter. */
const WINDOW = 10_000n
/** Number of events whose turns are read together. A waiting turn may have megabytes of arguments. */
const AT_ONCE = 10
/** Characters of a page. The group of events that exceeds it is the page's last. */
const PAGE_CHARS = 256 * 1024

type Row = Omit<OrganizationEvent, 'sequence'> & { sequence: bigint }
type Found = { lastEvent: bigint; expiredEvent: bigint } & (Row | { sequence: null })

/** Numbers what has been committed. Returns the highest sequence of each organization, and whether there is more. */
export async function numberEvents(deps: Deps, organizationIds: string[]): Promise<Map<string, Numbered>> {
  const rows = await deps.db.$queryRaw<(Numbered & { id: string })[]>`
    SELECT organization_id AS id, last_event AS last, has_more AS "hasMore"
    FROM number_organization_events(${organizationIds}::uuid[])`
  return new Map(rows.map((row) => [row.id, row]))
}

type Numbered = { last: bigint; hasMore: boolean }

/** Sequence after which a client continues to read an organization's events, and the highest one at that time. */
export type EventCursor = { organizationId: string; after: bigint; head: bigint }

/** Returns the cursor of a client, which is at the end without `sinceId`. Throws `invalid` for an id that no event has had. */
export async function openEvents(deps: Deps, organizationId: string, sinceId?: string): Promise<EventCursor> {
  const head = await numberAllOf(deps, organizationId)
  if (sinceId === undefined) return { organizationId, after: head, head }
  if (!/^\d{1,18}$/.test(sinceId))
    throw invalid('since_id: must be the id of an event of this stream, which is a number')
  const after = BigInt(sinceId)
  if (after > head) throw invalid('since_id: is ahead of the record; start without it')
  return { organizationId, after, head }
}

/** Numbers all events, or as many as possible while others lock the organization. Returns the highest sequence. */
async function numberAllOf(deps: Deps, organizationId: string): Promise<bigint> {
  for (let head = -1n; ; ) {
    const { last, hasMore } = (await numberEvents(deps, [organizationId])).get(organizationId) ?? NONE
    if (!hasMore || last === head) return last
    head = last
  }
}

const NONE: Numbered = { last: 0n, hasMore: false }

/** Reads numbered events in their order. A page may be empty and yet have others behind it, up to `head`. */
export async function readEventPage(
  deps: Deps,
  organizationId: string,
  after: bigint,
  filter: OrganizationEventFilter = {},
): Promise<EventPage> {
  const found = await findEvents(deps, organizationId, after, filter)
  const [state] = found
  if (state === undefined) return { after, through: after, head: after, events: [] }
  const from = after < state.expiredEvent ? state.expiredEvent : after
  const events = from === after ? [] : [gapOf(after, from)]
  const rows = found.filter((row): row is Row & Found => row.sequence !== null)
  let chars = 0
  for (let start = 0; start < rows.length; start += AT_ONCE) {
    const some = rows.slice(start, start + AT_ONCE)
    const streamed = await toStreamed(deps, organizationId, some)
    events.push(...streamed)
    chars += streamed.reduce((sum, { line }) => sum + line.length, 0)
    const isLast = start + AT_ONCE >= rows.length
    if (chars >= PAGE_CHARS && !isLast) return { after, through: lastOf(some), head: state.lastEvent, events }
  }
  const end = from + WINDOW < state.lastEvent ? from + WINDOW : state.lastEvent
  const through = rows.length === PAGE ? lastOf(rows) : end
  return { after, through, head: state.lastEvent, events }
}

const lastOf = (rows: Row[]): bigint => rows.at(-1)?.sequence ?? 0n

function findEvents(
  { db }: Deps,
  organizationId: string,
  after: bigint,
  { types, agent_id }: OrganizationEventFilter,
): Promise<Found[]> {
  const ofTypes = types === undefined ? Prisma.empty : Prisma.sql`AND type = ANY (${types}::text[])`
  const ofAgent = agent_id === undefined ? Prisma.empty : Prisma.sql`AND agent_id = ${agent_id}::uuid`
  return db.$queryRaw<Found[]>`
    SELECT o.last_event AS "lastEvent", o.expired_event AS "expiredEvent", e.*
    FROM (SELECT *, greatest(${after}::bigint, expired_event) AS "from" FROM organizations) AS o LEFT JOIN LATERAL (
      SELECT position, organization_id AS "organizationId", sequence, type, agent_id AS "agentId",
        session_id AS "sessionId", turn_id AS "turnId", data, created_at AS "createdAt"
      FROM organization_events
      WHERE organization_id = o.id AND sequence > o."from" AND sequence <= o."from" + ${WINDOW}::bigint ${ofTypes} ${ofAgent}
      ORDER BY sequence LIMIT ${PAGE}
    ) AS e ON true
    WHERE o.id = ${organizationId}::uuid ORDER BY e.sequence`
}

async function toStreamed(deps: Deps, organizationId: string, rows: Row[]): Promise<StreamedEvent[]> {
  const presented = await presentOrganizationEvents(deps, organizationId, rows)
  return presented.map((event, index) => {
    const { sequence, agentId } = rows[index] as Row
    const id = `${sequence}`
    return { sequence, agentId, id, type: event.type, line: JSON.stringify({ id, ...event }) }
  })
}

function gapOf(after: bigint, through: bigint): StreamedEvent {
  const data = { after: `${after}` }
  const event: StreamedOrganizationEvent = { id: `${through}`, type: GAP, timestamp: new Date().toISOString(), data }
  return { sequence: through, agentId: null, id: event.id, type: GAP, line: JSON.stringify(event) }
}

/** Returns a predicate that matches the filter's conditions in SQL. */
export const matcherOf =
  ({ types, agent_id }: OrganizationEventFilter) =>
  ({ type, agentId }: StreamedEvent): boolean =>
    type === GAP || ((types === undefined || types.includes(type)) && (agent_id === undefined || agentId === agent_id))
