import { isRecord } from '../../../lib/is-record.ts'
import type { Agent } from '../../../prisma/generated/client.ts'
import { ASK_USER_TOOL } from '../capabilities/builtin/ask-user.ts'
import { type Capability, type Tool, ToolError } from '../capabilities/capability.ts'
import { slugOf } from '../mcp-servers/tool-names.ts'

export type UsedAgent = Pick<Agent, 'id' | 'name' | 'description' | 'status'>

/** Time for finding out, or starting, what the agent does; the call waits for its turn without this limit. */
const TOOL_MS = 60_000
const MAX_MESSAGE = 100_000
/** Beginning of the names of tools that ask agents, and of their versions. */
export const ASKING = 'ask_'
export const AGENT_VERSION = 'agent:'
/** Digits of an agent's id by which its tool is told from an earlier one of the same name. */
const ID_DIGITS = 6

/** Returns the capabilities of agents that others may ask, in their order. Of two with one name, the second gets digits of its id. */
export function agentCapabilities(agents: UsedAgent[]): Capability[] {
  const names = new Set<string>([ASK_USER_TOOL])
  return agents.map((agent) => {
    const plain = plainNameOf(agent.name)
    const name = names.has(plain) ? `${plain}_${agent.id.replaceAll('-', '').slice(-ID_DIGITS)}` : plain
    names.add(name)
    return agentCapability(agent, name)
  })
}

/** Returns the name of the tool that asks an agent of a name, unless another agent's tool has it. */
export const plainNameOf = (agentName: string): string => `${ASKING}${slugOf(agentName)}`

const agentCapability = (agent: UsedAgent, toolName: string): Capability => ({
  id: `agent:${agent.id}`,
  name: agent.name,
  description: agent.description ?? '',
  status: agent.status === 'active' ? 'available' : 'disabled',
  category: 'agent',
  icon: 'bot',
  dependencies: [],
  features: [],
  tools: [askingTool(agent, toolName)],
})

/** One object: the service's own schemas are compiled once. */
const PARAMETERS = {
  type: 'object',
  properties: {
    message: { type: 'string', minLength: 1, maxLength: MAX_MESSAGE, description: 'The task or question.' },
  },
  required: ['message'],
  additionalProperties: false,
}

const askingTool = ({ id, name, description }: UsedAgent, toolName: string): Tool => ({
  name: toolName,
  displayName: `Ask ${name}`,
  description: `Asks the agent ${JSON.stringify(name)} and returns its answer, once it has finished.${description ? ` About the agent: ${description}` : ''} It sees only your message, so say all that it needs to know.`,
  parameters: PARAMETERS,
  // An approval holds for this agent, whatever its name and its settings become.
  version: `${AGENT_VERSION}${id}`,
  asks: id,
  isForeign: true,
  timeoutMs: TOOL_MS,
  mayRunAgain: true,
  run: (args, { askAgent }) => {
    if (askAgent === undefined) throw new ToolError('Agents cannot be asked here.')
    return askAgent(String(args.message))
  },
})

/** Returns where a configuration has an agent asked. Undefined for an invalid configuration. */
export function askedSession(config: unknown): 'new' | 'same' | undefined {
  if (config == null) return 'new'
  if (!isRecord(config) || Object.keys(config).some((key) => key !== 'session')) return undefined
  const { session = 'new' } = config
  return session === 'new' || session === 'same' ? session : undefined
}
