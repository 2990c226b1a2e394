import type { NewEvent } from '../../events/log/append.ts'
import { actStep } from '../../events/log/steps.ts'
import { newUuid } from '../../kit/ids.ts'
import type { RedactedCall } from '../../tools/call-secrets/redact-call.ts'
import { type CheckedCall, checkArguments } from '../../tools/capabilities/arguments/check.ts'
import type { Tool } from '../../tools/capabilities/capability.ts'
import { approvableVersion, type Toolset } from '../../tools/capabilities/toolset.ts'
import { type ActPlan, callCompleted, callStarted, type PlannedCall, planAct } from '../calls.ts'
import type { Deps } from '../deps.ts'
import type { TurnContext } from './turn-context.ts'

const MAX_NAMES_SHOWN = 50
/** Calls of an answer at workers of the organization. More results might not fit into the history of a workflow. */
const MAX_TEMPORAL_CALLS = 16

/**
 * Plans the calls of an answer and returns the events that begin the act. A call that cannot be run gets its result at
 * once: an error for the model to read.
 */
export async function beginAct(
  deps: Deps,
  context: TurnContext,
  iteration: number,
  toolCalls: RedactedCall[],
  signal: AbortSignal,
): Promise<{ events: NewEvent[]; plan: ActPlan }> {
  const execId = newUuid()
  const problems = await findProblems(deps, context, toolCalls, signal)
  const wrong: NewEvent[] = []
  const calls = toolCalls.map((toolCall, position): PlannedCall => {
    const offered = context.toolset.get(toolCall.name)
    const named = { ...toolCall, position, displayName: offered?.displayName ?? null }
    const error = problems[position]
    if (error === undefined) return { ...named, policy: offered?.policy ?? 'auto', state: 'open' }
    const result = { status: 'error', error, durationMs: 0 } as const
    const own = newUuid()
    wrong.push(callStarted(iteration, own, named), callCompleted(iteration, own, named, result))
    return { ...named, policy: 'auto', state: 'completed' }
  })
  const summaries = calls.map(({ id, name, displayName, policy }) => ({ id, name, display_name: displayName, policy }))
  const offered = calls.map(({ name }) => context.toolset.get(name))
  const versions = offered.map((one) => one?.tool?.version ?? null)
  const data = {
    tool_calls: summaries,
    ...(versions.some((version) => version !== null) ? { versions } : {}),
    // Apart from the versions, with which a worker of the release before compares tools.
    ...(calls.some(isGuarded)
      ? { approved_as: offered.map((one) => (one === undefined ? null : approvableVersion(one))) }
      : {}),
  }
  const began: NewEvent = { type: 'act.started', step: actStep(iteration), execId, data }
  return { events: [began, ...wrong], plan: planAct(context.toolset, calls) }
}

const isGuarded = ({ policy }: PlannedCall): boolean => policy === 'requires_approval'

/** Returns per call why it cannot be run, in words that help the model to correct it. Undefined for a runnable call. */
async function findProblems(
  deps: Deps,
  { toolset, organizationId }: TurnContext,
  toolCalls: RedactedCall[],
  signal: AbortSignal,
): Promise<(string | undefined)[]> {
  const checked: CheckedCall[] = []
  let temporalCalls = 0
  const places = toolCalls.map((call) => {
    const offered = toolset.get(call.name)
    if (offered === undefined) return noSuchTool(toolset, call.name)
    if (call.argumentsError !== undefined) return call.argumentsError
    const { tool, spec } = offered
    if (tool?.temporal !== undefined && ++temporalCalls > MAX_TEMPORAL_CALLS) return TOO_MANY_TEMPORAL
    const args = { ...call.arguments, ...call.hidden }
    const secret = Object.keys(call.hidden ?? {})
    return checked.push({ schema: spec.parameters, args, isTrusted: isOwnSchema(tool), secret }) - 1
  })
  const owner = await deps.owners.ownerOf(organizationId)
  const problems = await checkArguments(deps.threads.schemas, checked, { signal, owner })
  return places.map((place) => (typeof place === 'number' ? problems[place] : place))
}

const TOO_MANY_TEMPORAL = `One answer can have ${MAX_TEMPORAL_CALLS} calls of such tools; repeat this call in the next.`

/** Only the service's own schemas are compiled in process. */
const isOwnSchema = (tool: Tool | undefined): boolean => tool !== undefined && tool.schemaOwner !== 'external'

function noSuchTool(toolset: Toolset, name: string): string {
  const names = [...toolset.keys()].slice(0, MAX_NAMES_SHOWN)
  return `There is no tool "${name}". ${names.length === 0 ? 'There are no tools.' : `The tools are: ${names.join(', ')}.`}`
}

/** Returns cancelled results for calls of a turn that makes no further model call, which would read real results. */
export const refuseCalls = (
  context: TurnContext,
  iteration: number,
  toolCalls: RedactedCall[],
  error: string,
): NewEvent[] =>
  toolCalls.map((call) => {
    const displayName = context.toolset.get(call.name)?.displayName ?? null
    return callCompleted(iteration, newUuid(), { ...call, displayName }, { status: 'cancelled', error })
  })
