import type { ToolOutcome } from '../../../workflows/messages.ts'
import { toId } from '../../kit/ids.ts'
import { askedSession } from '../../tools/agents/capability.ts'
import type { Tool, ToolContext } from '../../tools/capabilities/capability.ts'
import type { CallResult } from '../calls.ts'
import type { AskingCall, AwaitsTurn, ChildTurn } from '../child-turns.ts'
import type { Deps } from '../deps.ts'

/** Abilities of the workflow that runs a call. `after_child`: it has run the turn of the agent that the call asks. */
export type RunOptions = { mayAsk?: boolean; children?: 'may_start' | 'after_child' | 'unknown' }

/** Times after which a call whose agent is busy is run again. */
const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 60_000
/** Number of runs after which a call gives up. They take ten minutes. */
const MAX_BUSY = 15

/** Chooses the turn by which an agent answers a call. Undefined for a tool that asks no agent, or cannot in this workflow. */
export async function chooseChild(
  deps: Deps,
  call: AskingCall,
  { tool, config }: { tool: Tool | undefined; config: unknown },
  children: RunOptions['children'],
): Promise<ChildTurn | undefined> {
  if (tool?.asks === undefined || children === 'unknown') return undefined
  return deps.children.choose(call, { agentId: tool.asks, session: askedSession(config) ?? 'new' })
}

/** Returns the operation by which a tool asks its agent. The choice is read again: another attempt may have made it. */
export function askOf(
  deps: Deps,
  call: AskingCall,
  { tool, config }: { tool: Tool | undefined; config: unknown },
  children: RunOptions['children'],
): ToolContext['askAgent'] {
  return async (message) => {
    const child = await chooseChild(deps, call, { tool, config }, children)
    if (child === undefined) throw new Error('a call without an agent asked one')
    return deps.children.ask(call, child, message, children === 'may_start')
  }
}

/** Returns what the workflow is to do until the call can be run again, or the result of a call that has waited too often. */
export function awaited({ turn }: AwaitsTurn, claims: number): ToolOutcome | CallResult {
  if (turn === undefined) {
    if (claims >= MAX_BUSY) return { status: 'error', error: "The agent's session is busy with another turn." }
    return { outcome: 'busy', afterMs: Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (claims - 1)) }
  }
  const { organizationId, sessionId, turnId, agentId } = turn
  const input = {
    organizationId: toId('org', organizationId),
    sessionId: toId('session', sessionId),
    turnId: toId('turn', turnId),
  }
  return { outcome: 'child', turn: input, agentId: agentId && toId('agent', agentId) }
}
