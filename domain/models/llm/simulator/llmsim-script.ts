import { z } from 'zod'
import { ModelError, type ModelPart, type ModelRequest, type ModelToolCall } from '../model.ts'
import { delay, paced, splitIntoTokens } from '../pacing.ts'
import { clean, statusError } from '../provider-failure.ts'
import { estimateInputTokens, estimateTokens } from '../token-estimate.ts'
import { parseToolArguments } from '../tool-arguments.ts'

const MAX_STEPS = 1000
const HOUR_MS = 60 * 60 * 1000
const END_OF_SCRIPT = '[end of script]'

const text = z.string({ error: 'must be a string' })
const milliseconds = z
  .int({ error: 'must be a whole number of milliseconds' })
  .min(0, { error: 'must not be negative' })
  .max(HOUR_MS, { error: `must be at most ${HOUR_MS} (an hour)` })

const ScriptToolCall = z.strictObject(
  {
    id: text.min(1, { error: 'must not be empty' }).optional(),
    name: text.min(1, { error: 'must not be empty' }),
    // A string stands for the model's own text, to simulate invalid JSON.
    arguments: z.union([z.record(z.string(), z.unknown()), z.string()], { error: 'must be an object or a string' }),
  },
  { error: objectExpected },
)

const ScriptFailure = z.strictObject(
  {
    status: z
      .int({ error: 'must be a whole number' })
      .min(400, { error: 'must be from 400 to 599' })
      .max(599, { error: 'must be from 400 to 599' }),
    message: text.min(1, { error: 'must not be empty' }),
    retry_after_ms: milliseconds.optional(),
    /** Number of failing attempts before the step answers. By default every attempt fails. */
    times: z.int({ error: 'must be a whole number' }).min(1, { error: 'must be at least 1' }).optional(),
    /** Makes the answer break off: `thinking` and `text` arrive before the failure. */
    after_text: z.boolean({ error: 'must be true or false' }).optional(),
  },
  { error: objectExpected },
)

/** One model call: `thinking`, then `text`, then the tool calls. `delay_ms` passes first, also before a failure. */
export const ScriptStep = z.strictObject(
  {
    text: text.optional(),
    thinking: text.optional(),
    tool_calls: z.array(ScriptToolCall, { error: 'must be a list' }).optional(),
    error: ScriptFailure.optional(),
    delay_ms: milliseconds.optional(),
    tokens_per_second: z
      .number({ error: 'must be a number' })
      .min(0.1, { error: 'must be at least 0.1' })
      .max(100_000, { error: 'must be at most 100000' })
      .optional(),
  },
  { error: objectExpected },
)
export type ScriptStep = z.infer<typeof ScriptStep>

const Script = z
  .array(ScriptStep, { error: 'must be a list of steps' })
  .max(MAX_STEPS, { error: `must have at most ${MAX_STEPS} steps` })

function objectExpected(issue: { code?: string | undefined; keys?: unknown }): string {
  if (issue.code !== 'unrecognized_keys' || !Array.isArray(issue.keys)) return 'must be an object'
  return `has a field that is not known: ${issue.keys.join(', ')}`
}

/** Parses the first code block marked `llmsim`. Undefined if there is none. Throws if the block is malformed. */
export function parseScript(systemPrompt: string): ScriptStep[] | undefined {
  const block = findBlock(systemPrompt)
  if (block === undefined) return undefined
  const parsed = Script.safeParse(parseJson(block))
  if (parsed.success) return parsed.data
  throw new Error(describeIssue(parsed.error.issues[0]))
}

/** Returns a sentence about the error in the prompt's script. Undefined if the script is valid or missing. */
export function checkScript(systemPrompt: string): string | undefined {
  try {
    parseScript(systemPrompt)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function findBlock(systemPrompt: string): string | undefined {
  const opening = /^[ \t]*```llmsim[ \t]*$/m.exec(systemPrompt)
  if (opening === null) return undefined
  const rest = systemPrompt.slice(opening.index + opening[0].length)
  const closing = /^[ \t]*```[ \t]*$/m.exec(rest)
  if (closing === null) throw new Error('The llmsim script has no closing ``` line.')
  return rest.slice(0, closing.index)
}

function parseJson(block: string): unknown {
  try {
    return JSON.parse(block)
  } catch (error) {
    throw new Error(`The llmsim script is not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Describes an issue. Steps are counted from 1, as readers do, and list items from 0, as in JSON paths. */
function describeIssue(issue: z.core.$ZodIssue | undefined): string {
  const [step, ...path] = issue?.path ?? []
  const problem = issue?.message ?? 'is malformed'
  if (typeof step !== 'number') return `The llmsim script ${problem}.`
  if (path.length === 0) return `The llmsim script's step ${step + 1} ${problem}.`
  return `The llmsim script's step ${step + 1} is malformed: ${z.core.toDotPath(path)} ${problem}.`
}

/** Answers according to the script in the system prompt. The session's n-th model call takes the n-th step. */
export async function* streamScript(request: ModelRequest): AsyncIterable<ModelPart> {
  const step = findStep(request)
  await delay(step.delay_ms ?? 0, request.signal)
  const failure = currentFailure(step, request.failures)
  if (failure !== undefined && step.error?.after_text !== true) throw failure
  const intervalMs = step.tokens_per_second === undefined ? 0 : 1000 / step.tokens_per_second
  for await (const delta of paced(splitIntoTokens(step.thinking ?? ''), intervalMs, request.signal)) {
    yield { type: 'thinking', delta }
  }
  for await (const delta of paced(splitIntoTokens(step.text ?? ''), intervalMs, request.signal)) {
    yield { type: 'text', delta }
  }
  if (failure !== undefined) throw failure
  const calls = toToolCalls(step, request.callIndex)
  for (const call of calls) yield { type: 'tool_call', call }
  yield finishPart(step, request)
}

function findStep(request: ModelRequest): ScriptStep {
  try {
    return parseScript(request.systemPrompt)?.[request.callIndex] ?? { text: END_OF_SCRIPT }
  } catch (error) {
    // Agents are validated when they are written, but the prompt may also contain other texts.
    throw new ModelError(clean(error instanceof Error ? error.message : String(error)), {
      status: 400,
      retryable: false,
    })
  }
}

function currentFailure(step: ScriptStep, failures: number): ModelError | undefined {
  if (step.error === undefined || failures >= (step.error.times ?? Number.POSITIVE_INFINITY)) return undefined
  const { status, message, retry_after_ms } = step.error
  return statusError({ providerName: 'llmsim', status, reason: message, retryAfterMs: retry_after_ms })
}

/** Converts a step's tool calls. Generated ids are the same on every attempt and unique in the session. */
function toToolCalls(step: ScriptStep, callIndex: number): ModelToolCall[] {
  return (step.tool_calls ?? []).map((call, position) => ({
    id: call.id ?? `call_${callIndex}_${position}`,
    name: call.name,
    ...(typeof call.arguments === 'string' ? parseToolArguments(call.arguments) : { arguments: call.arguments }),
  }))
}

function finishPart(step: ScriptStep, request: ModelRequest): ModelPart {
  const calls = step.tool_calls ?? []
  const output = (step.thinking ?? '') + (step.text ?? '') + (calls.length > 0 ? JSON.stringify(calls) : '')
  return {
    type: 'finish',
    usage: {
      input_tokens: estimateInputTokens(request.systemPrompt, request.messages),
      output_tokens: estimateTokens(output),
    },
    finishReason: calls.length > 0 ? 'tool_calls' : 'stop',
  }
}
