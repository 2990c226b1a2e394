import type { TokenUsage } from '../../contract/kit/common.ts'
import type { AgentId } from '../../contract/kit/ids.ts'
import { requireActiveAgent } from '../agents/check.ts'
import type { Actor } from '../kit/actor.ts'
import { badGateway, invalid } from '../kit/errors.ts'
import { newUuid, toId } from '../kit/ids.ts'
import type { CatalogueModel } from '../models/llm/catalogue.ts'
import { costOf } from '../models/llm/cost.ts'
import { ModelError } from '../models/llm/model.ts'
import { findProfile } from '../models/llm/profiles/find.ts'
import { readDefaultModelId, readModel } from '../models/llm/read-models.ts'
import { estimateTokens } from '../models/llm/token-estimate.ts'
import { openModel } from '../models/llm-providers/open-model.ts'
import { chargeLoneCall, refuseOverBudget } from '../spending/lone-call.ts'
import type { Deps } from './deps.ts'

/** Number of characters after which an answer is cut. */
const MAX_ANSWER = 64 * 1024
/** Limit on the tokens of an answer. */
const MAX_TOKENS = 16_384

/**
 * Asks the model of an agent one question outside of all sessions: without the agent's prompt and tools, and without a
 * record but its usage. Throws `invalid` for an agent that is not active or has no model, `quota_exceeded` when a budget is
 * used up, and `bad_gateway` for a failure of the provider.
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
  const profile = findProfile(model.provider.type, model.name)
  const payer = { actor, agentId: agent.id }
  await refuseOverBudget(deps, payer, profile?.cost !== undefined || deps.limits.mayBeUnpriced)
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
    // A limit above the model's own, which may be unknown, is refused by some.
    maxOutputTokens: profile?.limits?.output && Math.min(profile.limits.output, MAX_TOKENS),
    callIndex: 0,
    failures: 0,
    signal,
  })
  let text = ''
  let usage: TokenUsage | undefined
  let hasBegun = false
  const charge = (used: TokenUsage) =>
    chargeLoneCall(deps, payer, { model: model.name, usage: used, costUsd: costOf(profile, used) })
  try {
    for await (const part of parts) {
      hasBegun = true
      if (part.type === 'text' && text.length < MAX_ANSWER) text += part.delta
      if (part.type === 'finish') usage = part.usage
    }
  } catch (error) {
    // A provider counts what it has begun, and tells its usage at the end only.
    if (hasBegun || signal.aborted)
      await charge(usage ?? { input_tokens: estimateTokens(question), output_tokens: estimateTokens(text) })
    if (signal.aborted) throw badGateway('The model did not answer in time')
    if (error instanceof ModelError) throw badGateway(error.message)
    throw error
  }
  if (usage !== undefined) await charge(usage)
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
