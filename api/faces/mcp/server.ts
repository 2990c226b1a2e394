import { McpServer, type ServerContext } from '@modelcontextprotocol/server'
import { sentenceOf } from '../../http/errors.ts'
import { describeAgents, type OfferedAgent } from './agent-enum.ts'
import { readState } from './consent.ts'
import {
  AgentAnswer,
  AgentCancelArguments,
  AgentGetArguments,
  AgentSendArguments,
  agentStartArguments,
} from './contract.ts'
import type { Face } from './face.ts'
import { toError } from './present.ts'
import { cancelAgent, getAgent, sendAgent, startAgent, type ToolCall } from './tools.ts'

/** Time for which a client may keep the list of tools, which changes with the agents. */
const LIST_TTL_MS = 60_000

const INSTRUCTIONS =
  'Agents of this service work in sessions and remember what was said there. Start one with agent_start; keep the session id. While its status is queued or active, wait with agent_get. When it is waiting, answer its pending calls with agent_send.'

const START = `Gives a task to an agent and waits for its answer. Returns the session, the turn, its status, and the answer if there is one yet: the agent goes on working after wait_seconds.`

/** Creates the server of one request. `agents` are offered by agent_start, and are needed only to list the tools. */
export function createFaceServer(face: Face, agents: OfferedAgent[], version: string): McpServer {
  const server = new McpServer(
    { name: 'agents', title: 'Agents', version },
    {
      capabilities: { tools: { listChanged: false } },
      instructions: INSTRUCTIONS,
      cacheHints: { 'tools/list': { ttlMs: LIST_TTL_MS, cacheScope: 'private' } },
      requestState: { verify: readState },
    },
  )
  const run =
    <A>(tool: (call: ToolCall, args: A) => ReturnType<typeof startAgent>) =>
    async (args: A, { mcpReq: request }: ServerContext) => {
      const canAsk = canShowForms(server)
      return tool({ face, request, canAsk }, args).catch((error) => toError(explain(face, error)))
    }
  const labels = agents.map(({ label }) => label)
  server.registerTool(
    'agent_start',
    {
      title: 'Start an agent',
      description: `${START}\n\n${describeAgents(agents)}`,
      inputSchema: agentStartArguments(labels),
      outputSchema: AgentAnswer,
    },
    run(startAgent),
  )
  server.registerTool(
    'agent_get',
    {
      title: 'Get the answer of an agent',
      description: 'Waits until a turn has ended or needs an answer, and returns its state and its newest text.',
      inputSchema: AgentGetArguments,
      outputSchema: AgentAnswer,
      annotations: { readOnlyHint: true },
    },
    run(getAgent),
  )
  server.registerTool(
    'agent_send',
    {
      title: 'Send to an agent',
      description:
        'Sends the next message to a session, or answers its pending calls by their call_id: results for calls of kind client_tool, approvals for calls of kind approval. Ask the user before you approve a call. Then waits like agent_get.',
      inputSchema: AgentSendArguments,
      outputSchema: AgentAnswer,
    },
    run(sendAgent),
  )
  server.registerTool(
    'agent_cancel',
    {
      title: 'Cancel an agent',
      description: 'Cancels what an agent is doing in a session. It keeps what it has said so far.',
      inputSchema: AgentCancelArguments,
      outputSchema: AgentAnswer,
      annotations: { idempotentHint: true, destructiveHint: false },
    },
    run(cancelAgent),
  )
  return server
}

/**
 * Reports whether the client of a request shows forms to its user: by elicitation, whose default is the mode `form`. In
 * the sessions of the older protocol a client says so only at their start, so there it is not known.
 */
function canShowForms({ server }: McpServer): boolean {
  const modes = server.getClientCapabilities()?.elicitation
  return modes !== undefined && (modes.form !== undefined || modes.url === undefined)
}

/** Returns the sentence of a known error. Others are logged, and only their request can be told. */
function explain({ deps, ctx }: Face, error: unknown): string {
  const sentence = sentenceOf(error, deps)
  if (sentence !== undefined) return sentence
  deps.log.error({ err: error, requestId: ctx.state.requestId, path: ctx.path }, 'tool of the MCP server failed')
  return `Internal server error; request ${ctx.state.requestId}`
}
