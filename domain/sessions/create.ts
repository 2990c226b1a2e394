import type { AgentId } from '../../contract/ids.ts'
import type { CreateSessionRequest, Session } from '../../contract/sessions.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../actor.ts'
import { checkCapabilities, checkModel, checkTools } from '../agents/check.ts'
import { findAgent } from '../agents/read.ts'
import { createOnce } from '../create-once.ts'
import type { Deps } from '../deps.ts'
import { invalid } from '../errors.ts'
import type { CreationAttempt } from '../idempotency-keys.ts'
import { asUuid, DEFAULT_HARNESS_UUID, toId } from '../ids.ts'
import { getSession, readSessions } from './read.ts'

/**
 * Creates a session. Throws `invalid` for an agent, a model or a capability that does not exist, for an archived agent,
 * and for a tool that cannot work.
 */
export async function createSession(
  deps: Deps,
  actor: Actor,
  input: CreateSessionRequest,
  attempt: CreationAttempt = {},
): Promise<Session> {
  return createOnce(attempt, {
    find: async (uuid) => (await readSessions(deps, actor, [uuid]))[0],
    insert: (uuid) => insertSession(deps, actor, uuid, input),
  })
}

async function insertSession(deps: Deps, actor: Actor, id: string, input: CreateSessionRequest): Promise<Session> {
  await checkModel(deps, actor, input.model_id, 'model_id')
  checkCapabilities(deps, input.capabilities)
  await checkTools(deps, actor, input.tools)
  if (input.agent_id) await checkAgentOfSession(deps, actor, input.agent_id)
  await deps.db.session.createMany({
    data: [
      {
        id,
        organizationId: actor.organizationId,
        agentId: input.agent_id ?? null,
        harnessId: input.harness_id ?? DEFAULT_HARNESS_UUID,
        modelId: input.model_id ?? null,
        title: input.title ?? null,
        tags: input.tags ?? [],
        // Parsed by the contract; Prisma's JSON input type does not accept `unknown`.
        capabilities: (input.capabilities ?? []) as Prisma.InputJsonValue,
        tools: (input.tools ?? []) as Prisma.InputJsonValue,
      },
    ],
    // Another run of the request may have inserted it meanwhile.
    skipDuplicates: true,
  })
  return getSession(deps, actor, asUuid(id))
}

async function checkAgentOfSession(deps: Deps, actor: Actor, agentId: AgentId): Promise<void> {
  const agent = await findAgent(deps, actor, agentId)
  if (!agent) throw invalid(`agent_id: there is no agent ${toId('agent', agentId)}`)
  if (agent.status === 'archived') {
    throw invalid(`agent_id: ${toId('agent', agentId)} is archived; PATCH its status to "active" to use it again`)
  }
}
