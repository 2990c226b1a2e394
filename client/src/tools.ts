import { ApiError } from './errors.ts'
import type { Api, ClientToolResult, RequestedCall } from './generated/index.ts'
import { ENDLESS_PATIENCE, repeated } from './retry.ts'

/** Tool of the client. What it returns is the result, as JSON. What it throws is the error that the model reads. */
export type Tool = (args: Record<string, unknown>, call: RequestedCall) => unknown

export type ToolOptions = {
  /** The client's tools by their names. `mcp_elicitation` answers questions of the service's tools to the user. */
  tools?: Record<string, Tool> | undefined
  /** Decides whether the service may run a tool that waits for approval. */
  approve?: ((call: RequestedCall) => boolean | Promise<boolean>) | undefined
}

/**
 * Runs those of the requested calls that it has a function for, and submits their results. Returns the other calls, and
 * a promise that rejects when results could not be submitted.
 */
export type ToolRunner = (
  calls: RequestedCall[],
  signal: AbortSignal,
) => { others: RequestedCall[]; done: Promise<unknown> }

export function createToolRunner(sessionId: string, api: Api, { tools = {}, approve }: ToolOptions): ToolRunner {
  const find = ({ kind, name }: RequestedCall): Tool | undefined => {
    if (kind !== 'approval') return Object.hasOwn(tools, name) ? tools[name] : undefined
    return approve && (async (_args, call) => ({ approved: await approve(call) }))
  }
  const submit = (result: ClientToolResult, signal: AbortSignal) =>
    repeated(
      (limited) =>
        api.submitToolResults({ path: { session_id: sessionId }, body: { tool_results: [result] }, signal: limited }),
      // The turn waits for the result as long as for this.
      ENDLESS_PATIENCE,
      signal,
    )
  const run = async (call: RequestedCall, tool: Tool, signal: AbortSignal) => {
    const result = await resultOf(call, tool)
    try {
      await submit(result, signal)
    } catch (error) {
      if (!isRefused(error)) throw error
      // The result was too large, say; the turn would wait for another one. Where it is not pending any more, the
      // service refuses this, too.
      const reason = { tool_call_id: call.id, error: `The result was refused: ${error.message}` }
      await submit(reason, signal).catch((second) => {
        if (!isRefused(second)) throw second
      })
    }
  }
  return (calls, signal) => {
    const found = calls.map((call) => ({ call, tool: find(call) }))
    return {
      others: found.flatMap(({ call, tool }) => (tool ? [] : [call])),
      done: Promise.all(found.map(({ call, tool }) => tool && run(call, tool, signal))),
    }
  }
}

async function resultOf(call: RequestedCall, tool: Tool): Promise<ClientToolResult> {
  try {
    // What cannot be written as JSON is an error of the tool, too.
    const json = JSON.stringify(await tool(call.arguments, call)) ?? 'null'
    return { tool_call_id: call.id, result: JSON.parse(json) }
  } catch (error) {
    return { tool_call_id: call.id, error: error instanceof Error ? error.message : String(error) }
  }
}

const isRefused = (error: unknown): error is ApiError =>
  error instanceof ApiError && [400, 409, 413].includes(error.status)
