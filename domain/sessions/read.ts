import type { SessionId } from '../../contract/ids.ts'
import type { Session } from '../../contract/sessions.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../../contract/tools.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../actor.ts'
import { resolveCapabilities } from '../capabilities/resolve.ts'
import type { Deps } from '../deps.ts'
import { notFound } from '../errors.ts'
import { toId } from '../ids.ts'
import { presentUsage } from '../usage.ts'
import { countActiveSchedules } from './active-schedules.ts'

/** Throws `not_found`. */
export async function getSession(deps: Deps, actor: Actor, id: SessionId): Promise<Session> {
  const [session] = await readSessions(deps, actor, [id])
  if (session === undefined) throw notFound('Session')
  return session
}

/** Those of the uuids that are sessions of the organization, in their order. */
export async function readSessions(deps: Deps, actor: Actor, ids: string[]): Promise<Session[]> {
  const { organizationId } = actor
  const [rows, schedules] = await Promise.all([
    deps.db.session.findMany({ where: { id: { in: ids }, organizationId }, include: relations(actor) }),
    countActiveSchedules(deps, ids),
  ])
  const byId = new Map(rows.map((row) => [row.id, row]))
  return ids.flatMap((id) => {
    const row = byId.get(id)
    return row === undefined ? [] : [presentSession(deps, row, schedules.get(id) ?? 0)]
  })
}

/** A session that the caller may see. Throws `not_found` for any other. */
export async function requireSession(
  deps: Deps,
  actor: Actor,
  id: SessionId,
): Promise<{ id: string; lastSequence: number }> {
  const row = await deps.db.session.findFirst({
    where: { id, organizationId: actor.organizationId },
    select: { id: true, lastSequence: true },
  })
  if (!row) throw notFound('Session')
  return row
}

/** What belongs to a session in other tables; of the pins only the caller's. */
const relations = ({ userId }: Actor) =>
  ({
    agent: { select: { capabilities: true } },
    pins: { where: { userId }, select: { userId: true } },
  }) satisfies Prisma.SessionInclude

type SessionRow = Prisma.SessionGetPayload<{ include: ReturnType<typeof relations> }>

function presentSession(deps: Deps, row: SessionRow, activeSchedules: number): Session {
  // Written by createSession and createAgent only.
  const capabilities = row.capabilities as AgentCapabilityConfig[]
  const ofAgent = (row.agent?.capabilities ?? []) as AgentCapabilityConfig[]
  return {
    id: toId('session', row.id),
    organization_id: toId('org', row.organizationId),
    agent_id: row.agentId && toId('agent', row.agentId),
    harness_id: toId('harness', row.harnessId),
    model_id: row.modelId && toId('model', row.modelId),
    title: row.title,
    tags: row.tags,
    capabilities,
    tools: row.tools as ToolDefinition[],
    features: featuresOf(deps, [...ofAgent, ...capabilities]),
    active_schedule_count: activeSchedules,
    is_pinned: row.pins.length > 0,
    status: row.status,
    preview: row.preview,
    output_preview: row.outputPreview,
    usage: presentUsage(row),
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
    started_at: row.startedAt?.toISOString() ?? null,
    finished_at: row.finishedAt?.toISOString() ?? null,
  }
}

/** Each once, in the order in which the capabilities bring them. */
const featuresOf = (deps: Deps, refs: AgentCapabilityConfig[]): string[] => [
  ...new Set(resolveCapabilities(refs, deps.capabilities).flatMap(({ capability }) => capability.features)),
]
