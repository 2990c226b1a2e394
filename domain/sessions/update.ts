import type { SessionId } from '../../contract/ids.ts'
import type { Session, UpdateSessionRequest } from '../../contract/sessions.ts'
import type { AgentCapabilityConfig } from '../../contract/tools.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../actor.ts'
import { checkCapabilities, checkModel, checkTools } from '../agents/check.ts'
import type { Deps } from '../deps.ts'
import { notFound } from '../errors.ts'
import { getSession } from './read.ts'

/**
 * Changes the given fields in one statement, so that no concurrent change is lost. Throws `not_found`, and `invalid` for
 * a model, a capability or a tool that cannot work, unless the session named it before.
 */
export async function patchSession(
  deps: Deps,
  actor: Actor,
  id: SessionId,
  input: UpdateSessionRequest,
): Promise<Session> {
  const where = { id, organizationId: actor.organizationId }
  await checkChanges(deps, actor, input, where)
  const { count } = await deps.db.session.updateMany({
    where,
    data: {
      modelId: input.model_id === '' ? null : (input.model_id ?? undefined),
      title: input.title ?? undefined,
      tags: input.tags ?? undefined,
      // Parsed by the contract; Prisma's JSON input type does not accept `unknown`.
      capabilities: (input.capabilities ?? undefined) as Prisma.InputJsonValue | undefined,
      tools: (input.tools ?? undefined) as Prisma.InputJsonValue | undefined,
    },
  })
  if (count === 0) throw notFound('Session')
  return getSession(deps, actor, id)
}

async function checkChanges(
  deps: Deps,
  actor: Actor,
  { model_id, capabilities, tools }: UpdateSessionRequest,
  where: { id: string; organizationId: string },
): Promise<void> {
  if (!model_id && capabilities == null && tools == null) return
  const before = await deps.db.session.findFirst({ where, select: { modelId: true, capabilities: true } })
  if (before === null) throw notFound('Session')
  if (model_id !== before.modelId) await checkModel(deps, actor, model_id, 'model_id')
  // Validated by the contract when they were written.
  await checkCapabilities(deps, actor, capabilities, before.capabilities as AgentCapabilityConfig[])
  await checkTools(deps, actor, tools)
}
