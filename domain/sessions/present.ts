import type { ForkOrigin, Session } from '../../contract/sessions.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../../contract/tools.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { toId } from '../kit/ids.ts'
import { presentCost, presentUsage } from '../kit/usage.ts'
import type { Capability } from '../tools/capabilities/capability.ts'
import { resolveCapabilities } from '../tools/capabilities/resolve.ts'
import type { ApprovedTools } from '../tools/capabilities/toolset.ts'
import { type Missing, markMissing } from '../tools/registry/missing.ts'
import { agentPartOf } from './agent-part.ts'

/** Rows of other tables to load with a session, including only the caller's pin. */
export const relations = ({ userId }: Actor) =>
  ({
    agent: { select: { capabilities: true } },
    pins: { where: { userId }, select: { userId: true } },
  }) satisfies Prisma.SessionInclude

type StoredSession = Prisma.SessionGetPayload<{ include: ReturnType<typeof relations> }>

/** Session as it was read. The draft itself is missing in lists. */
export type SessionRow = Omit<StoredSession, 'draftPrompt'> & { draftPrompt?: string | null; hasDraft: boolean }

/** `registry` must include all capabilities with features that the session has. */
export function presentSession(
  registry: Capability[],
  missing: Missing,
  row: SessionRow,
  activeSchedules: number,
): Session {
  const { ofAgent, capabilities } = refsOf(row)
  return {
    id: toId('session', row.id),
    organization_id: toId('org', row.organizationId),
    agent_id: row.agentId && toId('agent', row.agentId),
    agent_version: row.agentVersion,
    harness_id: toId('harness', row.harnessId),
    model_id: row.modelId && toId('model', row.modelId),
    title: row.title,
    tags: row.tags,
    ...markMissing(missing, namesOf(row)),
    tools: row.tools as ToolDefinition[],
    approved_tools: Object.keys(row.approvedTools as ApprovedTools).sort(),
    draft_prompt: row.draftPrompt ?? null,
    features: featuresOf(registry, [...ofAgent, ...capabilities]),
    active_schedule_count: activeSchedules,
    is_pinned: row.pins.length > 0,
    snapshots: row.snapshotsSince !== null,
    forked_from: presentOrigin(row),
    status: row.status,
    // Only the statuses that end a turn are stored.
    last_turn_status: row.lastTurnStatus as Session['last_turn_status'],
    preview: row.preview,
    output_preview: row.outputPreview,
    usage: presentUsage(row),
    cost_usd: presentCost(row.costUsd),
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
    started_at: row.startedAt?.toISOString() ?? null,
    finished_at: row.finishedAt?.toISOString() ?? null,
  }
}

/** Where a fork begins, as stored: plain uuids, `posts` reserved for the message that is posted with it. */
export type StoredFork = {
  turn: string | null
  replaced: string | null
  posts: string | null
  dataAsOf: ForkOrigin['data_as_of']
}

export function presentOrigin({ forkedFromId, fork }: Pick<SessionRow, 'forkedFromId' | 'fork'>): ForkOrigin | null {
  if (forkedFromId === null) return null
  // Written together with the other by domain/forks/fork.ts.
  const { turn, replaced, dataAsOf } = fork as StoredFork
  return {
    session_id: toId('session', forkedFromId),
    turn_id: turn && toId('turn', turn),
    message_id: replaced && toId('message', replaced),
    data_as_of: dataAsOf,
  }
}

/** Returns the references of the session and its agent, validated by the contract when written. */
const refsOf = ({ capabilities, agent, hasDraft }: SessionRow) => ({
  ofAgent: agentPartOf(agent, hasDraft).capabilities,
  capabilities: capabilities as AgentCapabilityConfig[],
})

/** Returns the session's own references. */
export const namesOf = (row: SessionRow) => ({ modelId: row.modelId, capabilities: refsOf(row).capabilities })

/** Returns the refs, including the agents', that may have features. MCP servers have none. */
export const featuringRefs = (rows: SessionRow[]): AgentCapabilityConfig[] =>
  rows.flatMap((row) => Object.values(refsOf(row)).flat()).filter(({ ref }) => !ref.startsWith('mcp:'))

/** Returns the features of the capabilities, each once, in the order of the capabilities. */
const featuresOf = (registry: Capability[], refs: AgentCapabilityConfig[]): string[] => [
  ...new Set(resolveCapabilities(refs, registry).flatMap(({ capability }) => capability.features)),
]
