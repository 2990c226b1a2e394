import { ApiError } from './errors.ts'
import type { Operations } from './generated/operations.ts'
import type { ClientToolResult, RequestedCall } from './generated/types.gen.ts'
import { ENDLESS_PATIENCE, repeated } from './retry.ts'
import type { DefinedTool } from './tool.ts'

/** Function of a tool. The model reads its result, as JSON, or the message of the error that it throws. */
export type ToolFunction = {
  // As a method, it may declare the type of its arguments: `({ id }: { id: string }) => …`. Nothing checks that here.
  run(args: Record<string, unknown>, call: RequestedCall): unknown
}['run']
export type Tool = ToolFunction | DefinedTool

export type ToolOptions = {
  /** The client's tools by their names. `mcp_elicitation` answers questions of the service's tools to the user. */
  tools?: Record<string, Tool> | undefined
  /** Decides whether the service may run a tool that waits for approval. */
  approve?: ((call: RequestedCall) => boolean | Promise<boolean>) | undefined
}

/**
 * Runs the requested calls that have a function, and submits their results. Returns the other calls, and a promise that
 * rejects if results could not be submitted.
 */
export type ToolRunner = (
  calls: RequestedCall[],
  turnId: string,
  signal: AbortSignal,
) => Promise<{ others: RequestedCall[]; done: Promise<unknown> }>

/** `isResumed`: the turn may have been followed before, so calls may already have their results. */
type RunnerOptions = ToolOptions & { isResumed: boolean }

export function createToolRunner(
  session_id: string,
  api: Operations,
  { tools = {}, approve, isResumed }: RunnerOptions,
): ToolRunner {
  const find = ({ kind, name }: RequestedCall): ToolFunction | undefined => {
    if (kind === 'approval') return approve && (async (_args, call) => ({ approved: await approve(call) }))
    const found = Object.hasOwn(tools, name) ? tools[name] : undefined
    return typeof found === 'object' ? found.run : found
  }
  const readPending = async (turn_id: string, signal: AbortSignal): Promise<string[]> => {
    const get = (limited: AbortSignal) => api.turns.get({ session_id, turn_id }, { signal: limited })
    return (await repeated(get, ENDLESS_PATIENCE, signal)).pending_tool_calls.map(({ id }) => id)
  }
  const run = async (call: RequestedCall, tool: ToolFunction, signal: AbortSignal) =>
    submitResult(api, session_id, await resultOf(call, tool), signal)
  return async (calls, turnId, signal) => {
    const pending = isResumed ? await readPending(turnId, signal) : undefined
    const open = pending === undefined ? calls : calls.filter(({ id }) => pending.includes(id))
    const found = open.map((call) => ({ call, tool: find(call) }))
    return {
      others: found.flatMap(({ call, tool }) => (tool ? [] : [call])),
      done: Promise.all(found.map(({ call, tool }) => tool && run(call, tool, signal))),
    }
  }
}

/** Submits a result until the service takes or refuses it. */
export async function submitResult(
  api: Operations,
  session_id: string,
  result: ClientToolResult,
  signal: AbortSignal,
): Promise<void> {
  const submit = (one: ClientToolResult) =>
    repeated(
      (limited) => api.turns.submitToolResults({ session_id, tool_results: [one] }, { signal: limited }),
      // The turn waits for the result without a limit.
      ENDLESS_PATIENCE,
      signal,
    )
  try {
    await submit(result)
  } catch (error) {
    if (!isRefused(error)) throw error
    // The result may be too large; the turn would wait for another one. If the call is no longer pending, the service
    // refuses this, too.
    const reason = { tool_call_id: result.tool_call_id, error: `The result was refused: ${error.message}` }
    await submit(reason).catch((second) => {
      if (!isRefused(second)) throw second
    })
  }
}

/** Runs a tool. Its error is a result, too. */
export async function resultOf(call: RequestedCall, tool: ToolFunction): Promise<ClientToolResult> {
  try {
    // A result that cannot be converted to JSON is an error of the tool, too.
    const json = JSON.stringify(await tool(call.arguments, call)) ?? 'null'
    return { tool_call_id: call.id, result: JSON.parse(json) }
  } catch (error) {
    return { tool_call_id: call.id, error: error instanceof Error ? error.message : String(error) }
  }
}

const isRefused = (error: unknown): error is ApiError =>
  error instanceof ApiError && [400, 409, 413].includes(error.status)
