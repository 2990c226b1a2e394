import { MAX_OUTPUT_BYTES } from '../../../contract/output-schema.ts'
import { isRecord } from '../../../lib/is-record.ts'
import { createJsonScan } from '../../../lib/json-scan.ts'
import { storableJson, storableText } from '../../../lib/postgres-text.ts'
import { toId } from '../../kit/ids.ts'
import { type Model, ModelError } from '../../models/llm/model.ts'
import { withOutput } from '../../models/llm/structured/with-output.ts'
import { checkOutput } from '../../tools/capabilities/arguments/output.ts'
import type { Deps } from '../deps.ts'
import type { Answer } from './answer.ts'
import { goOnWithinCaps } from './go-on.ts'
import type { ModelCall } from './model-call.ts'
import type { Reasoned } from './running-attempt.ts'
import type { TurnContext } from './turn-context.ts'

/** Number of times that a model is asked again because its answer does not fit. */
const MAX_REPEATS = 2
const MAX_DEPTH = 64

/** The value of an answer, or a sentence for the model that says why it has none. */
type Output = { value: Record<string, unknown>; problem?: undefined } | { value?: undefined; problem: string }

type Asked = Pick<TurnContext, 'outputSchema'> & Pick<ModelCall, 'model' | 'profile'>

/** Returns a turn's model, whose answers are to fit the turn's output schema if it has one. */
export const askingForOutput = (ask: Model, { outputSchema, model, profile }: Asked): Model =>
  outputSchema === undefined
    ? ask
    : withOutput(ask, { type: model.provider.type, name: model.name, profile }, outputSchema)

/** Reads the output of a complete answer without calls. Undefined for a turn without an output schema. */
export async function takeOutput(
  { deps, context, signal }: ModelCall,
  answer: Pick<Answer, 'text' | 'output'>,
): Promise<Output | undefined> {
  const { outputSchema: schema, organizationId } = context
  if (schema === undefined) return undefined
  const given = answer.output ?? { text: answer.text }
  const read = 'problem' in given ? given : readValue(given.text)
  if (read.problem !== undefined) return { problem: storableText(read.problem) }
  const owner = await deps.owners.ownerOf(organizationId)
  const problem = await checkOutput(deps.threads.schemas, schema, JSON.stringify(read.value), { signal, owner })
  if (problem === 'busy') {
    const error = new ModelError('The answer could not be checked.', { retryable: true })
    // The provider charges for it.
    error.hasAnswered = true
    throw error
  }
  return problem === undefined ? read : { problem: storableText(problem) }
}

/** Reads the JSON object that a text is, alone or in a code block. Bounded before it is parsed. */
export function readValue(text: string): Output {
  const json = withoutFence(text.trim())
  const bytes = new TextEncoder().encode(json.slice(0, MAX_OUTPUT_BYTES + 1))
  if (bytes.length > MAX_OUTPUT_BYTES) return { problem: `It has more than ${MAX_OUTPUT_BYTES} bytes.` }
  const excess = createJsonScan({ maxParts: MAX_OUTPUT_BYTES, maxDepth: MAX_DEPTH }).add(bytes)
  if (excess !== undefined) return { problem: `It is nested more than ${MAX_DEPTH} levels deep.` }
  try {
    const value: unknown = JSON.parse(json)
    return isRecord(value) ? { value: storableJson(value) } : { problem: 'It is JSON, but not an object.' }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { problem: `It is not JSON: ${reason.slice(0, 200)}.` }
  }
}

function withoutFence(text: string): string {
  if (!text.startsWith('```') || !text.endsWith('```')) return text
  const begin = text.indexOf('\n')
  return begin === -1 ? text : text.slice(begin, -3)
}

/** Counts the turn's answers that did not fit, from the record. */
const countMisses = ({ messages, turnId }: TurnContext): number => ofTurn(messages, turnId).filter(isMiss).length

const ofTurn = (messages: TurnContext['messages'], turnId: string) =>
  messages.filter(({ role, turn_id }) => role === 'agent' && turn_id === toId('turn', turnId))

const isMiss = ({ metadata }: TurnContext['messages'][number]): boolean => metadata?.output_error !== undefined

/** Reports whether the turn's latest answer in the record did not fit. */
export const hasMissed = ({ messages, turnId }: TurnContext): boolean => ofTurn(messages, turnId).slice(-1).some(isMiss)

/**
 * Decides after an answer that does not fit: the next step asks again, unless the turn may not go on. `made` is the answer's
 * part of the usage, if the record of the context does not have the answer yet.
 */
export async function afterMiss(
  deps: Deps,
  context: TurnContext,
  iteration: number,
  made?: { outputTokens: number },
): Promise<Reasoned> {
  const misses = countMisses(context) + (made === undefined ? 0 : 1)
  if (misses > MAX_REPEATS) return { outcome: 'failed', code: 'output_invalid' }
  return goOnWithinCaps(deps, context, iteration, made)
}
