import type { Message } from '../../contract/messages.ts'
import { elapsedMs } from '../../lib/elapsed-ms.ts'
import type { ToolSpec } from '../models/llm/model.ts'
import { outputTools } from '../models/llm/structured/with-output.ts'
import { estimateInputTokens } from '../models/llm/token-estimate.ts'
import { hiddenTokens, type MessageSecrets } from '../tools/call-secrets/places.ts'
import { applyCompaction, patchDanglingCalls, planCompaction, type Thresholds } from './compaction.ts'

/** Input of a model call. `messages` are as stored in events: secrets are inserted when the model is called. */
export type ModelInput = {
  messages: Message[]
  tools: ToolSpec[]
  /** Points at which the conversation was cut, so that later readers of `llm.generation` cut it the same way. */
  thresholds?: Thresholds
  compaction?: {
    compacted: boolean
    duration_ms: number
    input_tokens_before: number
    input_tokens_after: number
  }
}

/** The data from which a model's input is built. */
type Ingredients = {
  messages: Message[]
  secrets: MessageSecrets
  systemPrompt: string
  toolset: Map<string, { spec: ToolSpec }>
  outputSchema?: Record<string, unknown> | undefined
  /** Size of the model's context in tokens. */
  contextTokens: number
}

/** Builds the model's input: the conversation with a result for every call, cut to fit into the model's context. */
export function buildModelInput(context: Ingredients): ModelInput {
  const startedAt = performance.now()
  const messages = patchDanglingCalls(context.messages)
  const tools = [...context.toolset.values()].map(({ spec }) => spec)
  const fixedTokens = estimateInputTokens(context.systemPrompt, [], [...tools, ...outputTools(context.outputSchema)])
  const plan = planCompaction(messages, {
    fixedTokens,
    contextTokens: context.contextTokens,
    hiddenTokens: ({ id }) => hiddenTokens(context.secrets, id),
  })
  if (plan === undefined) return { messages, tools }
  const { clearedBefore, droppedBefore, inputTokensBefore, inputTokensAfter } = plan
  const thresholds = { clearedBefore, droppedBefore }
  return {
    messages: applyCompaction(messages, thresholds),
    tools,
    thresholds,
    compaction: {
      compacted: true,
      duration_ms: elapsedMs(startedAt),
      input_tokens_before: inputTokensBefore,
      input_tokens_after: inputTokensAfter,
    },
  }
}
