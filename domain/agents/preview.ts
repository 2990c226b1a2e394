import { hash } from 'node:crypto'
import type { AgentPreviewResponse, PreviewAgentRequest } from '../../contract/agents.ts'
import type { ToolDefinition } from '../../contract/tools.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { composePrompt } from '../tools/capabilities/prompt.ts'
import { resolveCapabilities } from '../tools/capabilities/resolve.ts'
import { withinToolLimit } from '../tools/capabilities/tool-limit.ts'
import { buildToolset, type OfferedTool } from '../tools/capabilities/toolset.ts'
import { guardTools } from '../tools/registry/guard.ts'
import { checkCapabilities } from './check.ts'
import { checkTools } from './check-tools.ts'

/**
 * Returns the prompt and the tools that a model would receive. Throws `invalid` for a capability or a tool that cannot
 * work.
 */
export async function previewAgent(
  deps: Deps,
  actor: Actor,
  input: PreviewAgentRequest,
): Promise<AgentPreviewResponse> {
  const known = await checkCapabilities(deps, actor, input.capabilities)
  const { tools = [], capabilities: refs = [] } = input
  await checkTools(deps, actor, tools, { what: 'agent', refs, known })
  const resolved = resolveCapabilities(refs, known)
  const capabilities = withinToolLimit(await guardTools(deps, actor.organizationId, resolved, tools), tools)
  const toolset = buildToolset(capabilities, tools, [])
  const system_prompt = composePrompt(input.system_prompt, capabilities)
  return {
    system_prompt,
    system_prompt_sha256: hash('sha256', system_prompt),
    tools: [...toolset.values()].map((offered) => present(offered, tools)),
  }
}

function present({ spec, displayName, policy, tool }: OfferedTool, definitions: ToolDefinition[]): ToolDefinition {
  const shared = { ...spec, display_name: displayName }
  const definition = tool?.temporal && definitions.find(({ name }) => name === spec.name)
  if (definition?.type === 'temporal') return { ...definition, ...shared }
  return tool === undefined ? { type: 'client_side', ...shared } : { type: 'builtin', ...shared, policy }
}
