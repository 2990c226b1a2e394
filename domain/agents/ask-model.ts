import type { TokenUsage } from '../../contract/kit/common.ts'
import type { AgentId } from '../../contract/kit/ids.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { badGateway, invalid } from '../kit/errors.ts'
import { newUuid, toId } from '../kit/ids.ts'
import type { CatalogueModel } from '../models/llm/catalogue.ts'
import { ModelError } from '../models/llm/model.ts'
import { readDefaultModelId, readModel } from '../models/llm/read-models.ts'
import { openModel } from '../models/llm-providers/open-model.ts'
import { requireActiveAgent } from './check.ts'

/** Number of characters after which an answer is cut. */
const MAX_ANSWER = 64 * 1024

/**
 * Asks the model of an agent one question outside of all sessions: without the agent's prompt and tools, and without a
 * record. Throws `invalid` for an agent that is not active or has no model, and `bad_gateway` for a failure of the provider.
 */
export async function askModel(
  deps: Deps,
  actor: Actor,
  agentId: AgentId,
  question: string,
  signal: AbortSignal,
): Promise<{ text: string; usage: TokenUsage | undefined }> {
  const agent = await requireActiveAgent(deps, actor, agentId, 'model')
  const model = await modelOf(deps, actor, agent.defaultModelId)
  const id = toId('message', newUuid())
  const asked = { id, role: 'user' as const, session_id: toId('session', newUuid()), sequence: 1 }
  const parts = openModel(
    deps,
    actor.organizationId,
    model,
  )({
    systemPrompt: '',
    messages: [{ ...asked, content: [{ type: 'text', text: question }], created_at: new Date().toISOString() }],
    tools: [],
    callIndex: 0,
    failures: 0,
    signal,
  })
  let text = ''
  let usage: TokenUsage | undefined
  try {
    for await (const part of parts) {
      if (part.type === 'text') text += part.delta
      if (part.type === 'finish') usage = part.usage
      if (text.length > MAX_ANSWER) break
    }
  } catch (error) {
    if (signal.aborted) throw badGateway('The model did not answer in time')
    if (error instanceof ModelError) throw badGateway(error.message)
    throw error
  }
  return { text: text.slice(0, MAX_ANSWER), usage }
}

async function modelOf(deps: Deps, { organizationId }: Actor, id: string | null): Promise<CatalogueModel> {
  const own = id === null ? undefined : await readModel(deps, organizationId, id)
  if (own?.isActive) return own
  const defaultId = await readDefaultModelId(deps, organizationId)
  const model = defaultId && (await readModel(deps, organizationId, defaultId))
  if (!model) throw invalid('model: no model can serve this agent; all are disabled')
  return model
}
