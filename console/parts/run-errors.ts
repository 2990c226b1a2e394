import type { TurnErrorCode } from 'agent-session-client'

/** Codes of failed turns in a few words. */
export const RUN_ERRORS: Record<TurnErrorCode, string> = {
  llm_error: 'Model failed',
  no_model: 'No model',
  max_iterations: 'Too many model calls',
  max_tool_calls: 'Too many tool calls',
  max_output_tokens: 'Too many output tokens',
  turn_too_old: 'Ran too long',
  answer_too_long: 'Answer too long',
  too_many_tool_calls: 'Too many tools at once',
  budget_exceeded: 'Budget used up',
  price_unknown: 'Price unknown',
  output_invalid: 'Output invalid',
  timeout: 'Timed out',
  internal_error: 'Internal error',
}
