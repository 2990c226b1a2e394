import type { TurnErrorCode } from '../../../contract/errors.ts'
import { MIN_OUTPUT_TOKENS } from '../../models/llm/model.ts'
import type { Deps } from '../deps.ts'
import type { TurnContext } from './turn-context.ts'

/** Cap that leaves a turn no further model call, and the sentence for the calls that nobody will read the results of. */
export type ReachedCap = { code: TurnErrorCode; sentence: string }

/**
 * Returns the cap that a turn has reached with an answer that calls tools. Undefined when the turn may go on. `made` is
 * the part that the record does not have yet.
 */
export async function findReachedCap(
  deps: Deps,
  context: TurnContext,
  iteration: number,
  made: { toolCalls: number; outputTokens: number } = { toolCalls: 0, outputTokens: 0 },
): Promise<ReachedCap | undefined> {
  const { maxTurnIterations, maxToolCalls, maxOutputTokens } = context.caps
  const reached = (code: TurnErrorCode, limit: string) => ({
    code,
    sentence: `The turn has reached its limit of ${limit}.`,
  })
  if (iteration >= maxTurnIterations) return reached('max_iterations', `${maxTurnIterations} model calls`)
  if (maxToolCalls !== undefined && (await countToolCalls(deps, context.turnId)) + made.toolCalls > maxToolCalls)
    return reached('max_tool_calls', `${maxToolCalls} tool calls`)
  if (hasTooFewTokens(context, made.outputTokens))
    return reached('max_output_tokens', `${maxOutputTokens} output tokens`)
  return undefined
}

/** Output tokens that the turn's next model call may have. Undefined without a cap. */
export const leftOutputTokens = ({ caps: { maxOutputTokens }, usage }: TurnContext): number | undefined =>
  maxOutputTokens && maxOutputTokens - usage.output_tokens

/** Whether the tokens that are left are too few for a model call. */
export function hasTooFewTokens(context: TurnContext, made = 0): boolean {
  const left = leftOutputTokens(context)
  return left !== undefined && left - made < MIN_OUTPUT_TOKENS
}

async function countToolCalls({ db }: Deps, turnId: string): Promise<number> {
  const [row] = await db.$queryRaw<{ count: number }[]>`
    SELECT coalesce(sum((data ->> 'tool_call_count')::int), 0)::int AS count FROM events
    WHERE turn_id = ${turnId}::uuid AND type = 'reason.completed'`
  return row?.count ?? 0
}
