import type { ContentPart } from '../../contract/messages.ts'
import type { ToolPolicy } from '../../contract/tools.ts'
import type { RequestedCall } from '../../contract/turns.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { PlannedTool } from '../../workflows/messages.ts'
import type { NewEvent } from '../events/log/append.ts'
import { actStep, callStep, callSteps, stepSql } from '../events/log/steps.ts'
import { toId } from '../kit/ids.ts'
import type { Hidden } from '../tools/call-secrets/redact-call.ts'
import type { Toolset } from '../tools/capabilities/toolset.ts'
import type { ChildTurn } from './child-turns.ts'

/** A recorded tool call that the model made in one of a turn's steps. */
export type Call = {
  /** Index among the calls of the step. Workflows identify the call by it, because a model's id may be anything. */
  position: number
  id: string
  name: string
  displayName: string | null
  arguments: Record<string, unknown>
  policy: ToolPolicy
  /** Exec id of the call's `tool.started`, or of `act.started` when the call has not started. */
  execId: string
  state: 'open' | 'started' | 'completed'
}

/** A call as planned by its step, before it has run. */
export type PlannedCall = Omit<Call, 'execId'>

/**
 * The calls of one reason step, and the questions that some of them have asked their user, which are calls for the client.
 * `execId` comes from `act.started`.
 */
export type Act = { iteration: number; execId: string; startedAt: Date; calls: Call[]; questions: Call[] }

type Row = {
  iteration: number
  execId: string
  startedAt: Date
  summaries: { id: string; name: string; display_name: string | null; policy: ToolPolicy }[]
  content: { type: string; arguments?: Record<string, unknown> }[]
  questions: RequestedCall[]
  /** Exec ids of the started calls, by step. */
  started: Record<string, string>
  completed: string[]
}

/** Reads the calls of a step, by default of the turn's latest step that has any. Undefined when there are none. */
export async function readAct(
  db: Prisma.TransactionClient,
  turnId: string,
  iteration?: number,
): Promise<Act | undefined> {
  const step = iteration === undefined ? Prisma.empty : Prisma.sql`AND step = ${actStep(iteration)}`
  const iterationSql = Prisma.sql`act.iteration`
  const ofAct = Prisma.sql`turn_id = ${turnId}::uuid AND step LIKE ${stepSql.calls(iterationSql)}`
  const rows = await db.$queryRaw<Row[]>`
    SELECT act.iteration::int, act.exec_id AS "execId", act.ts AS "startedAt", act.data -> 'tool_calls' AS summaries,
      coalesce((SELECT data #> '{message,content}' FROM events
        WHERE turn_id = ${turnId}::uuid AND type = 'output.message.completed' AND step = ${stepSql.reason(iterationSql)}
      ), '[]') AS content,
      (SELECT coalesce(jsonb_agg(question ORDER BY e.sequence), '[]')
        FROM events e CROSS JOIN jsonb_array_elements(e.data -> 'tool_calls') AS question
        WHERE turn_id = ${turnId}::uuid AND type = 'tool.call_requested' AND step LIKE ${stepSql.questions(iterationSql)})
        AS questions,
      (SELECT coalesce(jsonb_object_agg(step, exec_id), '{}') FROM events WHERE ${ofAct} AND type = 'tool.started')
        AS started,
      ARRAY(SELECT step FROM events WHERE ${ofAct} AND type = 'tool.completed') AS completed
    FROM (
      SELECT *, ${stepSql.iterationOf(Prisma.sql`step`)} AS iteration FROM events
      WHERE turn_id = ${turnId}::uuid AND type = 'act.started' ${step} ORDER BY sequence DESC LIMIT 1
    ) AS act`
  const row = rows[0]
  if (row === undefined) return undefined
  const { iteration: number, execId, startedAt } = row
  return { iteration: number, execId, startedAt, calls: toCalls(row), questions: toQuestions(row) }
}

/** Pairs the calls of `act.started` with the message's, which are the same calls in the same order. */
function toCalls({ iteration, execId, summaries, content, started, completed }: Row): Call[] {
  const parts = content.filter((part) => part.type === 'tool_call')
  return summaries.map(({ id, name, display_name, policy }, position) => {
    const step = callStep(iteration, id)
    const state = completed.includes(step) ? 'completed' : step in started ? 'started' : 'open'
    const named = { position, id, name, displayName: display_name, policy, state } as const
    return { ...named, execId: started[step] ?? execId, arguments: parts[position]?.arguments ?? {} }
  })
}

const toQuestions = ({ iteration, execId, questions, completed }: Row): Call[] =>
  questions.map(({ id, name, arguments: args, kind }, position) => {
    const state = completed.includes(callStep(iteration, id)) ? 'completed' : 'open'
    const policy = kind === 'approval' ? 'requires_approval' : 'client_side'
    return { position, id, name, displayName: null, arguments: args, policy, execId, state }
  })

/** Returns the calls and questions that the client has not answered yet. */
export const pendingCalls = ({ calls, questions }: Act): Call[] => [...calls, ...questions].filter(awaitsClient)

/** The calls that the service runs now. `asks` is true when other calls wait for the client first. */
export type ActPlan = { runs: PlannedTool[]; asks: boolean }

export const planAct = (toolset: Toolset, calls: PlannedCall[]): ActPlan => ({
  runs: planRuns(toolset, calls),
  asks: calls.some(awaitsClient),
})

export function planRuns(toolset: Toolset, calls: PlannedCall[]): PlannedTool[] {
  const isDue = ({ policy, state }: PlannedCall) =>
    policy === 'auto' ? state !== 'completed' : policy === 'requires_approval' && state === 'started'
  return calls.filter(isDue).map(({ position, name }) => {
    const tool = toolset.get(name)?.tool
    // The tool was removed after the model called it. The run reports that to the model.
    if (tool === undefined) return { position, tool: 'unknown', timeoutMs: 0 }
    const { name: called, timeoutMs, temporal } = tool
    return { position, tool: called, timeoutMs, ...(temporal && { temporal }) }
  })
}

export const awaitsClient = ({ policy, state }: PlannedCall): boolean => policy !== 'auto' && state === 'open'

/** Presents a call as events and API responses contain it. */
export const presentCall = ({ id, name, arguments: args }: Pick<Call, 'id' | 'name' | 'arguments'>) => ({
  id,
  name,
  arguments: args,
})

/** Presents a call that waits for its client. */
export const presentRequested = (call: Call): RequestedCall => ({
  ...presentCall(call),
  kind: call.policy === 'requires_approval' ? 'approval' : 'client_tool',
})

export type CallResult = {
  status: 'success' | 'error' | 'timeout' | 'cancelled'
  /** Content parts of the result, present only on success. */
  parts?: ContentPart[]
  error?: string
  durationMs?: number
  /** Secrets that `parts` leave out. */
  hidden?: Hidden | undefined
}

type CallName = Pick<Call, 'id' | 'name' | 'displayName'>

export const callStarted = (
  iteration: number,
  execId: string,
  call: CallName & Pick<Call, 'arguments'>,
  child?: ChildTurn,
): NewEvent => ({
  type: 'tool.started',
  step: callStep(iteration, call.id),
  execId,
  data: { tool_call: presentCall(call), display_name: call.displayName, ...(child && { child: presentChild(child) }) },
})

const presentChild = ({ agentId, sessionId, turnId }: ChildTurn) => ({
  agent_id: toId('agent', agentId),
  session_id: toId('session', sessionId),
  turn_id: toId('turn', turnId),
})

export const callCompleted = (iteration: number, execId: string, call: CallName, result: CallResult): NewEvent => ({
  type: 'tool.completed',
  step: callStep(iteration, call.id),
  execId,
  data: {
    tool_call_id: call.id,
    tool_name: call.name,
    display_name: call.displayName,
    status: result.status,
    success: result.status === 'success',
    result: result.parts ?? null,
    error: result.error ?? null,
    duration_ms: result.durationMs ?? null,
  },
})

export type ActOutcome = Pick<Act, 'iteration' | 'execId' | 'startedAt'> & { successes: number; failures: number }

/** Counts the successes and failures among the calls of a step. Undefined when the step had no calls. */
export async function readActOutcome(
  db: Prisma.TransactionClient,
  turnId: string,
  iteration: number,
): Promise<ActOutcome | undefined> {
  const rows = await db.$queryRaw<Omit<ActOutcome, 'iteration'>[]>`
    SELECT act.exec_id AS "execId", act.ts AS "startedAt",
      (count(*) FILTER (WHERE (call.data ->> 'success')::boolean))::int AS successes,
      (count(*) FILTER (WHERE NOT (call.data ->> 'success')::boolean))::int AS failures
    FROM events act LEFT JOIN events call
      ON call.turn_id = act.turn_id AND call.type = 'tool.completed' AND call.step LIKE ${callSteps(iteration)}
      AND act.data -> 'tool_calls' @> jsonb_build_array(jsonb_build_object('id', call.data -> 'tool_call_id'))
    WHERE act.turn_id = ${turnId}::uuid AND act.type = 'act.started' AND act.step = ${actStep(iteration)}
    GROUP BY act.exec_id, act.ts`
  return rows[0] && { ...rows[0], iteration }
}

export const actCompleted = (act: ActOutcome): NewEvent => ({
  type: 'act.completed',
  step: actStep(act.iteration),
  execId: act.execId,
  data: {
    completed: true,
    success_count: act.successes,
    error_count: act.failures,
    duration_ms: Math.max(0, Date.now() - act.startedAt.getTime()),
  },
})

/** Returns a `cancelled` result for each call of the turn's latest act that has none and will get none. */
export async function endOpenCalls(db: Prisma.TransactionClient, turnId: string, error: string): Promise<NewEvent[]> {
  const act = await readAct(db, turnId)
  if (act === undefined) return []
  const open = [...act.questions, ...act.calls].filter(({ state }) => state !== 'completed')
  return open.map((call) => callCompleted(act.iteration, call.execId, call, { status: 'cancelled', error }))
}
