import type { CreateSessionRequest, Session } from '../contract/sessions.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../contract/tools.ts'
import type { Prisma, Session as SessionRow } from '../prisma/generated/client.ts'
import { checkCapabilities, checkModel, checkTools } from './agents.ts'
import type { Deps, Scope } from './deps.ts'
import { invalid, notFound } from './errors.ts'
import { DEFAULT_HARNESS_ID, newUuid, toId, toUuid } from './ids.ts'
import { presentUsage } from './usage.ts'

/** Throws `invalid` for an agent, a model or a capability that does not exist, and for a tool that cannot work. */
export async function createSession(deps: Deps, scope: Scope, input: CreateSessionRequest): Promise<Session> {
  checkModel(deps, input.model_id, 'model_id')
  checkCapabilities(deps, input.capabilities)
  await checkTools(input.tools)
  const agentId = input.agent_id ? await findAgent(deps, scope, input.agent_id) : null
  const row = await deps.db.session.create({
    data: {
      id: newUuid(),
      organizationId: scope.organizationId,
      agentId,
      harnessId: toUuid(input.harness_id ?? DEFAULT_HARNESS_ID),
      modelId: input.model_id ? toUuid(input.model_id) : null,
      title: input.title ?? null,
      tags: input.tags ?? [],
      // Parsed by the contract; Prisma's JSON input type knows no `unknown`.
      capabilities: (input.capabilities ?? []) as Prisma.InputJsonValue,
      tools: (input.tools ?? []) as Prisma.InputJsonValue,
    },
  })
  return presentSession(row)
}

async function findAgent(deps: Deps, scope: Scope, agentId: string): Promise<string> {
  const agent = await deps.db.agent.findFirst({
    where: { id: toUuid(agentId), organizationId: scope.organizationId },
    select: { id: true },
  })
  if (!agent) throw invalid(`agent_id: there is no agent ${agentId}`)
  return agent.id
}

export async function getSession(deps: Deps, scope: Scope, id: string): Promise<Session> {
  const row = await deps.db.session.findFirst({ where: { id: toUuid(id), organizationId: scope.organizationId } })
  if (!row) throw notFound('Session')
  return presentSession(row)
}

/** The uuid of a session that the caller may see. Throws `not_found` for any other. */
export async function requireSession(
  deps: Deps,
  scope: Scope,
  id: string,
): Promise<{ id: string; lastSequence: number }> {
  const row = await deps.db.session.findFirst({
    where: { id: toUuid(id), organizationId: scope.organizationId },
    select: { id: true, lastSequence: true },
  })
  if (!row) throw notFound('Session')
  return row
}

export type SessionPage = { data: Session[]; total: number; limit: number; offset: number }

export async function listSessions(
  deps: Deps,
  scope: Scope,
  page: { agent_id?: string | undefined; limit: number; offset: number },
): Promise<SessionPage> {
  const where = {
    organizationId: scope.organizationId,
    ...(page.agent_id === undefined ? {} : { agentId: toUuid(page.agent_id) }),
  }
  const orderBy = [{ createdAt: 'desc' }, { id: 'desc' }] as const
  const [rows, total] = await Promise.all([
    deps.db.session.findMany({ where, orderBy: [...orderBy], skip: page.offset, take: page.limit }),
    deps.db.session.count({ where }),
  ])
  return { data: rows.map(presentSession), total, limit: page.limit, offset: page.offset }
}

const presentSession = (row: SessionRow): Session => ({
  id: toId('session', row.id),
  organization_id: toId('org', row.organizationId),
  agent_id: row.agentId && toId('agent', row.agentId),
  harness_id: toId('harness', row.harnessId),
  model_id: row.modelId && toId('model', row.modelId),
  title: row.title,
  tags: row.tags,
  // Written by createSession only.
  capabilities: row.capabilities as AgentCapabilityConfig[],
  tools: row.tools as ToolDefinition[],
  // Capabilities bring features, schedules count themselves: both come with those areas.
  features: [],
  active_schedule_count: 0,
  is_pinned: false,
  status: row.status,
  preview: row.preview,
  output_preview: row.outputPreview,
  usage: presentUsage(row),
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
  started_at: row.startedAt?.toISOString() ?? null,
  finished_at: row.finishedAt?.toISOString() ?? null,
})
