import type { ModelId, SessionId } from '../../contract/kit/ids.ts'
import type { Session, UpdateSessionRequest } from '../../contract/sessions.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../../contract/tools.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import { checkCapabilities, checkVersion, requireModel } from '../agents/check.ts'
import { checkAgentTools, checkTools } from '../agents/check-tools.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { audit, givenFields } from '../kit/audit/entry.ts'
import { invalid, noSession } from '../kit/errors.ts'
import type { ApprovedTools } from '../tools/capabilities/toolset.ts'
import { readCapabilities } from '../tools/registry/read.ts'
import { agentPartOf } from './agent-part.ts'
import { getSession } from './read.ts'

/**
 * Changes the given fields in one statement, so that no concurrent change is lost. Throws `not_found`, and `invalid`
 * for a model, a capability or a tool that cannot work, unless the session already has it.
 */
export async function patchSession(
  deps: Deps,
  actor: Actor,
  id: SessionId,
  input: UpdateSessionRequest,
): Promise<Session> {
  const where = { id, organizationId: actor.organizationId }
  const modelId = await checkChanges(deps, actor, input, where)
  const data = {
    agentVersion: input.agent_version === 0 ? null : (input.agent_version ?? undefined),
    modelId: modelId === '' ? null : (modelId ?? undefined),
    title: input.title ?? undefined,
    tags: input.tags ?? undefined,
    // Parsed by the contract; Prisma's JSON input type does not accept `unknown`.
    capabilities: (input.capabilities ?? undefined) as Prisma.InputJsonValue | undefined,
    tools: (input.tools ?? undefined) as Prisma.InputJsonValue | undefined,
  }
  await deps.db.$transaction(async (tx) => {
    const { count } = await tx.session.updateMany({ where, data })
    if (count === 0) throw noSession()
    const withdrawn = input.approved_tools == null ? [] : await keepApprovals(tx, id, input.approved_tools)
    const details = { ...givenFields(input), ...(withdrawn.length > 0 && { withdrawn }) }
    await audit(tx, actor, { action: 'session.update', target: id, details })
  })
  return getSession(deps, actor, id)
}

/** Checks the input and returns its model's id. */
async function checkChanges(
  deps: Deps,
  actor: Actor,
  { agent_version, model_id, capabilities, tools }: UpdateSessionRequest,
  where: { id: string; organizationId: string },
): Promise<ModelId | '' | null | undefined> {
  if (!agent_version && !model_id && capabilities == null && tools == null) return model_id as '' | null | undefined
  const before = await deps.db.session.findFirst({
    where,
    include: { agent: { select: { capabilities: true, tools: true } } },
  })
  if (before === null) throw noSession()
  if (agent_version) {
    if (before.agentId === null) throw invalid('agent_version: the session has no agent')
    if (before.draftPrompt !== null)
      throw invalid('agent_version: the session runs its draft_prompt instead of a version')
    await checkVersion(deps, actor, before.agentId, agent_version)
  }
  const modelId = await requireModel(deps, actor, model_id, 'model_id', before.modelId)
  // Validated by the contract when they were written.
  const named = before.capabilities as AgentCapabilityConfig[]
  await checkCapabilities(deps, actor, capabilities, named)
  const { capabilities: ofAgent, tools: agentTools } = agentPartOf(before.agent, before.draftPrompt !== null)
  const ownerOf = async (own: AgentCapabilityConfig[]) => {
    const refs = [...ofAgent, ...own]
    return { refs, known: await readCapabilities(deps, where.organizationId, refs) }
  }
  const [had, has] = [await ownerOf(named), await ownerOf(capabilities ?? named)]
  const stored = before.tools as ToolDefinition[]
  checkAgentTools(agentTools, tools ?? stored, has, had)
  await checkTools(deps, actor, tools ?? stored, { what: 'session', ...has }, { tools: stored, ...had })
  return modelId
}

/** Characters of a tool's name in an entry of the audit log. */
const SHOWN_CHARACTERS = 200

/**
 * Withdraws all approvals of a session but the ones to keep. Returns the tools that ask again, at most as many as can be
 * approved. Throws `invalid` for a tool that the session does not have approved.
 */
async function keepApprovals(db: Prisma.TransactionClient, id: SessionId, kept: string[]): Promise<string[]> {
  // The row is locked by the update before.
  const { approvedTools } = await db.session.findUniqueOrThrow({ where: { id }, select: { approvedTools: true } })
  const approved = new Map(Object.entries(approvedTools as ApprovedTools))
  const wrong = kept.findIndex((name) => !approved.has(name))
  if (wrong !== -1) {
    throw invalid(
      `approved_tools.${wrong}: must be a tool that is approved for the session; only the approval of a call adds one`,
    )
  }
  const data = { approvedTools: Object.fromEntries(kept.map((name) => [name, approved.get(name) ?? null])) }
  await db.session.update({ where: { id }, data })
  const withdrawn = [...approved.keys()].filter((name) => !kept.includes(name))
  return withdrawn.map((name) => name.slice(0, SHOWN_CHARACTERS).toWellFormed())
}
