import type { Model, ModelPart, ModelRequest, ModelToolCall, ToolSpec } from '../model.ts'
import { withoutCall } from '../providers/provider-data.ts'
import { isEnforced, type OutputModel } from './enforced.ts'

export const OUTPUT_TOOL = 'final_output'

/**
 * Returns a model whose answers are to fit a schema: by its provider's own means, or else by a tool that takes the
 * answer. A call of that tool becomes the text of the answer, so nobody else sees a difference.
 */
export function withOutput(model: Model, of: OutputModel, schema: Record<string, unknown>): Model {
  const { $schema, $id, ...sent } = schema
  return (request) =>
    isEnforced(of, sent, request.tools.length > 0)
      ? model({ ...request, outputSchema: sent })
      : byTool(model, request, { type: 'object', ...sent })
}

const toolOf = (name: string, parameters: ToolSpec['parameters']): ToolSpec => ({
  name,
  description: 'Takes the final answer. Call it once, when all else is done.',
  parameters,
})

/** Returns the part of a call's input that an output schema adds, for estimates: its size is a tool's. */
export const outputTools = (schema: Record<string, unknown> | undefined): ToolSpec[] =>
  schema === undefined ? [] : [toolOf(OUTPUT_TOOL, schema)]

async function* byTool(model: Model, request: ModelRequest, parameters: ToolSpec['parameters']) {
  const name = freeName(request.tools)
  const tool = toolOf(name, parameters)
  const way = `Give the final answer by a call of the tool ${name}, not as text.`
  const systemPrompt = [request.systemPrompt, way].filter((text) => text !== '').join('\n\n')
  const calls: ModelToolCall[] = []
  let separator = ''
  for await (const part of model({ ...request, systemPrompt, tools: [...request.tools, tool] })) {
    if (part.type === 'text') separator = '\n\n'
    if (part.type === 'tool_call') calls.push(part.call)
    if (part.type === 'finish') yield* toFinish(part, calls, name, separator)
    else if (part.type !== 'tool_call' || part.call.name !== name) yield part
  }
}

/** Ends an answer. One with calls of other tools too is not final: the model is asked again with their results. */
function* toFinish(
  finish: Extract<ModelPart, { type: 'finish' }>,
  calls: ModelToolCall[],
  name: string,
  separator: string,
): Iterable<ModelPart> {
  const index = calls.findIndex((call) => call.name === name)
  const given = calls[index]
  if (given === undefined) return yield finish
  if (calls.some((call) => call.name !== name)) {
    return yield {
      ...finish,
      providerData: calls.reduceRight(
        (data, call, at) => (call.name === name ? withoutCall(data, at) : data),
        finish.providerData,
      ),
    }
  }
  const end = { ...finish, finishReason: finish.finishReason === 'tool_calls' ? 'stop' : finish.finishReason }
  const { providerData: _, ...rest } = end
  if (given.argumentsError !== undefined) return yield { ...rest, output: { problem: given.argumentsError } }
  const text = JSON.stringify(given.arguments)
  yield { type: 'text', delta: separator + text }
  yield { ...rest, output: { text } }
}

function freeName(tools: ToolSpec[]): string {
  const taken = new Set(tools.map(({ name }) => name))
  let name = OUTPUT_TOOL
  for (let count = 2; taken.has(name); count++) name = `${OUTPUT_TOOL}_${count}`
  return name
}
