import type { Message } from '../../contract/messages.ts'
import type { ToolSpec } from '../llm/model.ts'
import { estimateInputTokens } from '../llm/token-estimate.ts'
import { applyCompaction, patchDanglingCalls, planCompaction, type Thresholds } from './compaction.ts'

/** What a model is given. */
export type ModelInput = {
  messages: Message[]
  tools: ToolSpec[]
  /** Where the conversation was cut, so that a later reader of llm.generation cuts it alike. */
  thresholds?: Thresholds
  compaction?: {
    compacted: boolean
    duration_ms: number
    input_tokens_before: number
    input_tokens_after: number
  }
}

/** What a model's input is made of. */
type Ingredients = {
  messages: Message[]
  systemPrompt: string
  toolset: Map<string, { spec: ToolSpec }>
  model: { contextTokens: number }
}

/** The conversation with a result for every call, made to fit into the model's context. */
export function buildModelInput(context: Ingredients): ModelInput {
  const startedAt = Date.now()
  const messages = patchDanglingCalls(context.messages)
  const tools = [...context.toolset.values()].map(({ spec }) => spec)
  const fixedTokens = estimateInputTokens(context.systemPrompt, [], tools)
  const plan = planCompaction(messages, { fixedTokens, contextTokens: context.model.contextTokens })
  if (plan === undefined) return { messages, tools }
  const { clearedBefore, droppedBefore, inputTokensBefore, inputTokensAfter } = plan
  const thresholds = { clearedBefore, droppedBefore }
  return {
    messages: applyCompaction(messages, thresholds),
    tools,
    thresholds,
    compaction: {
      compacted: true,
      duration_ms: Date.now() - startedAt,
      input_tokens_before: inputTokensBefore,
      input_tokens_after: inputTokensAfter,
    },
  }
}
