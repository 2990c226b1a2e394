import type { ToolPolicy } from '../../../contract/tools.ts'
import { elapsedMs } from '../../../lib/elapsed-ms.ts'
import { withoutSmuggled } from '../../../lib/hidden-text.ts'
import { storableJson, storableText } from '../../../lib/postgres-text.ts'
import { sleep } from '../../../lib/sleep.ts'
import { warnRarely } from '../../../lib/warn-rarely.ts'
import type { ToolOutcome } from '../../../workflows/messages.ts'
import { appendEvents, type NewEvent } from '../../events/log/append.ts'
import { actStep, callStep, callSteps, progressStep, reasonStep } from '../../events/log/steps.ts'
import { DomainError } from '../../kit/errors.ts'
import { newUuid, toId } from '../../kit/ids.ts'
import { resolveSecrets } from '../../kit/organization-secrets/resolve.ts'
import { WriterLost } from '../../kit/session-scope.ts'
import { openSessionDatabases } from '../../session-data/databases/open-session-databases.ts'
import { openSessionFiles } from '../../session-data/files/open-session-files.ts'
import { openSessionStorage } from '../../session-data/storage/open-session-storage.ts'
import { readArguments } from '../../tools/call-secrets/decrypt.ts'
import { withSecrets } from '../../tools/call-secrets/encrypt.ts'
import { type CallSecret, secretsOf } from '../../tools/call-secrets/places.ts'
import { type Hidden, redactResult } from '../../tools/call-secrets/redact-call.ts'
import { redactError, redactText } from '../../tools/call-secrets/redact-text.ts'
import { type Tool, type ToolContext, ToolError } from '../../tools/capabilities/capability.ts'
import { InputRequired } from '../../tools/capabilities/questions.ts'
import type { ToolOutput } from '../../tools/capabilities/tool-output.ts'
import { approvableVersion } from '../../tools/capabilities/toolset.ts'
import { openSessionSkills } from '../../tools/skills/open-session-skills.ts'
import { type CallResult, callCompleted, callStarted } from '../calls.ts'
import { AwaitsTurn } from '../child-turns.ts'
import type { Deps } from '../deps.ts'
import { type Asking, askClient, type Round, readAsking, roundsSql } from '../questions.ts'
import type { TurnPlace } from '../turn-place.ts'
import { appendAs, hasTooManyClaims, RightLost, whileTurnRuns } from './attempt.ts'
import { askOf, awaited, chooseChild, type RunOptions } from './child-call.ts'
import { createProgressWriter } from './progress-writer.ts'
import { boundImages } from './result-images.ts'
import type { Attempt } from './running-attempt.ts'
import { agentVersionSql, type Configuration, configurationSql, configure } from './turn-context.ts'

/** What came of running a tool. */
type Ran = CallResult | InputRequired | AwaitsTurn

/** Size limit of a result's JSON. More than a model can use: a tool with more to return has to do so in parts. */
const MAX_RESULT_BYTES = 2 * 1024 * 1024
/** Length limit of an error's text, which may repeat what the model has sent. */
export const MAX_ERROR_LENGTH = 4096
/** Time to wait for a tool that ignores its aborted signal. */
const UNHEEDED_MS = 1000
/** Time for which recording a result is retried. Fits into the 30 s that the workflow adds to a tool's own time. */
const RECORD_LIMIT_MS = 20_000
const RECORD_PAUSE_MS = 500

/**
 * Runs one call of a reason step and records its result, or its tool's questions to the user. Whatever the tool does,
 * the turn continues.
 */
export async function runTool(
  deps: Deps,
  turn: TurnPlace,
  iteration: number,
  position: number,
  attempt: Attempt,
  { mayAsk = true, children = 'may_start' }: RunOptions = {},
): Promise<ToolOutcome> {
  const call = await loadCall(deps, turn, iteration, position)
  if (call === undefined) return { outcome: 'ended' }
  if (call.isCompleted) return { outcome: 'done' }
  // The client answers; the workflow runs the call again then.
  if (call.asking.isOpen) return { outcome: 'asked' }
  const ran = await whileTurnRuns(deps, turn, attempt, async ({ signal }): Promise<ToolOutcome> => {
    const live = { fence: attempt.fence, signal }
    const step = callStep(iteration, call.id)
    const execId = newUuid()
    const startedAt = performance.now()
    // Before the claim: while they cannot be read, the tool has not run.
    const hidden = call.secret && (await readArguments(deps, turn.sessionId, call.secret))
    const child = await chooseChild(deps, { ...turn, step }, call, children)
    const { claims } = await appendAs(deps, turn, step, live, [callStarted(iteration, execId, call, child)])
    const askAgent = child && askOf(deps, { ...turn, step }, call, children)
    const ran = hasTooManyClaims(claims)
      ? UNRUNNABLE
      : await deps.tracing.toolCall(
          { ...call, turn: { ...turn, traceparent: call.traceparent }, iteration, callId: call.id },
          () => resultOf(deps, turn, { ...call, hidden, execId, askAgent }, claims, iteration, live),
          tracedResult,
        )
    const waited = ran instanceof AwaitsTurn ? awaited(ran, claims) : ran
    if ('outcome' in waited) return waited
    const ask = (asked: InputRequired) => (mayAsk ? askClient(iteration, execId, call, claims, asked) : MAY_NOT_ASK)
    const result = waited instanceof InputRequired ? ask(waited) : waited
    if ('type' in result) {
      await recordResult(deps, turn, step, live, result)
      return { outcome: 'asked' }
    }
    const completed = callCompleted(iteration, execId, call, { ...result, durationMs: elapsedMs(startedAt) })
    const { id } = call
    const place = { ...turn, iteration, kind: 'result' } as const
    const recorded = withSecrets(deps, place, completed, [{ id, hidden: result.hidden }])
    await recordResult(deps, turn, step, live, recorded)
    return { outcome: 'done' }
  })
  return ran === 'ended' ? { outcome: 'ended' } : ran
}

/**
 * Records a result, and retries while the database is unavailable, so that a short outage does not make the tool run
 * again. A repeated event is recorded once.
 */
async function recordResult(deps: Deps, turn: TurnPlace, step: string, attempt: Attempt, result: NewEvent) {
  const until = performance.now() + RECORD_LIMIT_MS
  for (;;) {
    try {
      return await appendAs(deps, turn, step, attempt, [result])
    } catch (error) {
      if (error instanceof RightLost || attempt.signal.aborted || performance.now() > until) throw error
      warnRarely(deps.log, { err: error, turn: toId('turn', turn.turnId) }, 'tool result not recorded; retrying')
      await sleep(RECORD_PAUSE_MS, attempt.signal)
    }
  }
}

/** Records an error for a call whose runs have all failed because of errors in the service. */
export async function failTool(deps: Deps, turn: TurnPlace, iteration: number, position: number): Promise<void> {
  const call = await loadCall(deps, turn, iteration, position)
  if (call === undefined || call.isCompleted) return
  const execId = newUuid()
  await appendEvents(deps, turn, [
    callStarted(iteration, execId, call),
    callCompleted(iteration, execId, call, UNRUNNABLE),
  ])
}

const UNRUNNABLE: CallResult = {
  status: 'error',
  error: 'The tool could not be run because of an error in the service.',
}

/** For a workflow that began on a release before, which takes every other outcome than a result for the turn's end. */
const MAY_NOT_ASK: CallResult = {
  status: 'error',
  error: 'The tool asks its user, which this turn cannot. Call it again in a later one.',
}

const CANNOT_ASK_AGENTS: CallResult = {
  status: 'error',
  error: 'The tool asks an agent, which this turn cannot. Call it again in a later one.',
}

const UNREADABLE: CallResult = {
  status: 'error',
  error: 'The call was not run, because its secret arguments can no longer be read. Call again with the values.',
}

export const UNAPPROVED = {
  status: 'error',
  error: 'The tool has changed, or waits for approval now; call it again.',
} satisfies CallResult

/** Whether the user has approved the call of this very tool: it may have been replaced since it was planned. */
export function isApproved({ planned, position, ...call }: ApprovedCall): boolean {
  if (planned?.policy !== 'requires_approval') return false
  const { version, approvedAs } = planned
  if (approvedAs === null) return version === (call.tool?.version ?? null)
  return approvedAs[position] === approvableVersion(call)
}

type ApprovedCall = Pick<LoadedCall, 'tool' | 'config' | 'planned' | 'position'>

async function resultOf(
  deps: Deps,
  turn: TurnPlace,
  call: LoadedCall & { hidden: Hidden | undefined; execId: string; askAgent: ToolContext['askAgent'] | undefined },
  claims: number,
  iteration: number,
  attempt: Attempt,
): Promise<Ran> {
  const { fence, signal } = attempt
  const { tool, config, hidden, asking, askAgent } = call
  if (asking.failure !== undefined) return asking.failure
  // The attempt that has asked ended there.
  const mayHaveRun = claims > asking.claims + 1
  if (tool === undefined) return { status: 'error', error: `There is no tool "${call.name}" any more.` }
  if (mayHaveRun && !tool.mayRunAgain) {
    const error =
      'The call was interrupted and may have had its effect; it was not run again. Look before you repeat it.'
    return { status: 'error', error }
  }
  if (call.secret !== undefined && hidden === undefined) return UNREADABLE
  if (call.policy === 'requires_approval' && !isApproved(call)) return UNAPPROVED
  if (tool.asks !== undefined && askAgent === undefined) return CANNOT_ASK_AGENTS
  const { threads, bash, mcp, tracing } = deps
  const outgoing = { ...deps.outgoing, traceparent: tracing.traceparent }
  const step = callStep(iteration, call.id)
  const idempotencyKey = `${toId('turn', turn.turnId)}:${iteration}:${call.position}`
  const secretsFor = (url: string, texts: readonly string[]) =>
    resolveSecrets(deps, { organizationId: turn.organizationId, url }, texts)
  const shared = { outgoing, threads, bash, mcp, ...turn, config, answers: asking.answers, resolveSecrets: secretsFor }
  const run = {
    ...shared,
    callId: call.id,
    userId: call.userId,
    idempotencyKey,
    mayHaveRun,
    ...(askAgent && { askAgent }),
  }
  const writer = { turnId: turn.turnId, step, fence }
  let reports = 0
  const progress = createProgressWriter(async ({ message, ...counts }) => {
    const name = progressStep(iteration, claims, ++reports, call.id)
    const said = message === undefined ? {} : { message: storableText(redactText(shownOf(tool, message), hidden)) }
    const data = { turn_id: toId('turn', turn.turnId), tool_call_id: call.id, ...counts, ...said }
    await appendAs(deps, turn, step, attempt, [{ type: 'tool.progress', step: name, execId: call.execId, data }])
  })
  return withTimeLimit(tool, signal, async (limited) => {
    const scope = { ...turn, writer, signal: limited }
    const data = {
      files: openSessionFiles(deps, scope),
      storage: openSessionStorage(deps, scope),
      databases: openSessionDatabases(deps, scope),
      skills: openSessionSkills(deps, scope),
      schedules: deps.openSchedules(scope),
    }
    try {
      return toResult(
        tool,
        await tool.run({ ...call.arguments, ...hidden }, { ...run, ...data, report: progress.report, signal: limited }),
      )
    } catch (error) {
      limited.throwIfAborted()
      if (error instanceof InputRequired || error instanceof AwaitsTurn) return error
      if (error instanceof WriterLost) throw new RightLost(error.outcome)
      if (error instanceof DomainError || error instanceof ToolError)
        return {
          status: 'error',
          error: storableText(redactText(shownOf(tool, error.message), hidden).slice(0, MAX_ERROR_LENGTH)),
        }
      // Whether the tool has had its effect is then unknown, but another attempt finds out.
      if (tool.mayRunAgain && deps.unavailability(error) !== undefined) throw redactError(error, hidden)
      const err = redactError(error, hidden)
      deps.log.error({ err, tool: tool.name, turn: toId('turn', turn.turnId) }, 'tool failed')
      return { status: 'error', error: 'The tool failed because of an error in the service.' }
    }
  }).finally(progress.finish)
}

/**
 * Returns the tool's result, or a `timeout` result when it exceeds its time limit. Rejects when `signal` aborts: the
 * call then gets no result here. In both cases a tool that ignores its signal is abandoned after `UNHEEDED_MS`.
 */
async function withTimeLimit(
  tool: Tool,
  signal: AbortSignal,
  run: (limited: AbortSignal) => Promise<Ran>,
): Promise<Ran> {
  // The listener below would miss an abort that has already happened.
  signal.throwIfAborted()
  const late = new AbortController()
  const limited = AbortSignal.any([signal, late.signal])
  const timer = setTimeout(() => late.abort(new Error('the tool took too long')), tool.timeoutMs)
  let unheeded: NodeJS.Timeout | undefined
  const givenUp = Promise.withResolvers<never>()
  const giveUpSoon = () => {
    unheeded = setTimeout(() => givenUp.reject(limited.reason), UNHEEDED_MS)
  }
  limited.addEventListener('abort', giveUpSoon)
  try {
    return await Promise.race([run(limited), givenUp.promise])
  } catch (error) {
    signal.throwIfAborted()
    if (!late.signal.aborted) throw error
    return { status: 'timeout', error: `The tool had no result within ${Math.round(tool.timeoutMs / 1000)} s.` }
  } finally {
    clearTimeout(timer)
    clearTimeout(unheeded)
    limited.removeEventListener('abort', giveUpSoon)
  }
}

/** Returns a text of a tool as people and models can both read it. */
const shownOf = ({ isForeign }: Tool, text: string): string => (isForeign ? withoutSmuggled(text) : text)

function toResult(tool: Tool, { value, images = [] }: ToolOutput): CallResult {
  const json = shownOf(tool, JSON.stringify(storableJson(value ?? null)))
  const bytes = Buffer.byteLength(json)
  if (bytes > MAX_RESULT_BYTES) {
    return { status: 'error', error: `The result has ${bytes} bytes; at most ${MAX_RESULT_BYTES} can be given back.` }
  }
  const { value: text, hidden } = redactResult(tool, json)
  return { status: 'success', parts: [{ type: 'text', text }, ...boundImages(images)], hidden }
}

const tracedResult = (ran: Ran) => {
  if (ran instanceof Error) return { errorType: undefined }
  if (ran.status === 'success')
    return { errorType: undefined, content: ran.parts?.filter(({ type }) => type === 'text') }
  return { errorType: ran.status, content: ran.error }
}

/**
 * Policy on a call when it was planned, and the version of its tool. `approvedAs` has for each call of the answer what its
 * approval is for; null in an act without approvals, or planned by a release before.
 */
type PlannedAs = { policy: ToolPolicy | null; version: string | null; approvedAs: (string | null)[] | null }

export type LoadedCall = {
  position: number
  id: string
  name: string
  userId: string | null
  traceparent: string | null
  displayName: string | null
  arguments: Record<string, unknown>
  /** The call's secrets, which the arguments leave out. */
  secret: CallSecret | undefined
  isCompleted: boolean
  asking: Asking
  /** Policy under which the call was planned. Null when the plan is not recorded. */
  planned: PlannedAs | null
  /** The tool's current policy. */
  policy: ToolPolicy | undefined
  tool: Tool | undefined
  config: unknown
}

type Row = Configuration & {
  call: { id: string; name: string; arguments: Record<string, unknown> }
  secretTokens: Record<string, number> | null
  completed: string[]
  userId: string | null
  traceparent: string | null
  rounds: Round[]
  planned: PlannedAs | null
}

/** Loads a call and its tool. Undefined when the session is gone, and the call with it. */
export async function loadCall(
  deps: Deps,
  { organizationId, sessionId, turnId }: TurnPlace,
  iteration: number,
  position: number,
): Promise<LoadedCall | undefined> {
  const [row] = await deps.db.$queryRaw<Row[]>`
    SELECT ${configurationSql},
      (SELECT part FROM jsonb_array_elements(m.data #> '{message,content}') WITH ORDINALITY AS parts (part, number)
        WHERE part ->> 'type' = 'tool_call' ORDER BY number OFFSET ${position} LIMIT 1) AS call,
      m.data -> 'secret_tokens' AS "secretTokens",
      (SELECT json_build_object('policy', data #> ARRAY['tool_calls', ${String(position)}, 'policy'],
          'version', data #> ARRAY['versions', ${String(position)}], 'approvedAs', data -> 'approved_as')
        FROM events WHERE turn_id = m.turn_id AND type = 'act.started' AND step = ${actStep(iteration)}) AS planned,
      ARRAY(SELECT step FROM events
        WHERE turn_id = m.turn_id AND type = 'tool.completed' AND step LIKE ${callSteps(iteration)}) AS completed,
      t.traceparent, t.user_id AS "userId",
      ${roundsSql(turnId, iteration)} AS rounds
    FROM events m JOIN sessions s ON s.id = m.session_id JOIN turns t ON t.id = m.turn_id
    ${agentVersionSql}
    WHERE m.turn_id = ${turnId}::uuid AND m.type = 'output.message.completed' AND m.step = ${reasonStep(iteration)}
      AND s.id = ${sessionId}::uuid AND s.organization_id = ${organizationId}::uuid`
  if (row === undefined) return undefined
  const { id, name } = row.call
  const { toolset } = await configure(deps, organizationId, row, { toolName: name })
  const offered = toolset.get(name)
  const secrets = secretsOf(turnId, iteration, 'arguments', row.secretTokens ?? {})
  return {
    position,
    id,
    name,
    arguments: row.call.arguments,
    userId: row.userId,
    traceparent: row.traceparent,
    secret: secrets.find(({ callId }) => callId === id),
    displayName: offered?.displayName ?? null,
    planned: row.planned,
    isCompleted: row.completed.includes(callStep(iteration, id)),
    asking: readAsking(row.rounds, id),
    policy: offered?.policy,
    tool: offered?.tool,
    config: offered?.config,
  }
}
