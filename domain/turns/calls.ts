import type { ContentPart } from '../../contract/messages.ts'
import type { ToolPolicy } from '../../contract/tools.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { PlannedTool } from '../../workflows/messages.ts'
import type { Toolset } from '../capabilities/toolset.ts'
import type { NewEvent } from '../events/append.ts'
import { actStep, callStep, callSteps, stepSql } from '../events/steps.ts'

/** A call that the model made in one of a turn's steps, as the record has it. */
export type Call = {
  /** Its place among the calls of the step, which is how workflows name it: a model's id may be anything. */
  position: number
  id: string
  name: string
  displayName: string | null
  arguments: Record<string, unknown>
  policy: ToolPolicy
  /** That of its tool.started, or of the act when it has none. */
  execId: string
  state: 'open' | 'started' | 'completed'
}

/** A call as its step plans it, before anything of it has run. */
export type PlannedCall = Omit<Call, 'execId'>

/** The calls of one reason step. `execId` is that of act.started. */
export type Act = { iteration: number; execId: string; startedAt: Date; calls: Call[] }

type Row = {
  iteration: number
  execId: string
  startedAt: Date
  summaries: { id: string; name: string; display_name: string | null; policy: ToolPolicy }[]
  content: { type: string; arguments?: Record<string, unknown> }[]
  /** By step; what a started call's own run is called. */
  started: Record<string, string>
  completed: string[]
}

/** The calls of a step, or of the turn's latest step that has any; undefined when there are none. */
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
      (SELECT data #> '{message,content}' FROM events
        WHERE turn_id = ${turnId}::uuid AND type = 'output.message.completed' AND step = ${stepSql.reason(iterationSql)})
        AS content,
      (SELECT coalesce(jsonb_object_agg(step, exec_id), '{}') FROM events WHERE ${ofAct} AND type = 'tool.started')
        AS started,
      ARRAY(SELECT step FROM events WHERE ${ofAct} AND type = 'tool.completed') AS completed
    FROM (
      SELECT *, ${stepSql.iterationOf(Prisma.sql`step`)} AS iteration FROM events
      WHERE turn_id = ${turnId}::uuid AND type = 'act.started' ${step} ORDER BY sequence DESC LIMIT 1
    ) AS act`
  const row = rows[0]
  return row && { iteration: row.iteration, execId: row.execId, startedAt: row.startedAt, calls: toCalls(row) }
}

/** act.started and the message name the same calls in the same order. */
function toCalls({ iteration, execId, summaries, content, started, completed }: Row): Call[] {
  const parts = content.filter((part) => part.type === 'tool_call')
  return summaries.map(({ id, name, display_name, policy }, position) => {
    const step = callStep(iteration, id)
    const state = completed.includes(step) ? 'completed' : step in started ? 'started' : 'open'
    const named = { position, id, name, displayName: display_name, policy, state } as const
    return { ...named, execId: started[step] ?? execId, arguments: parts[position]?.arguments ?? {} }
  })
}

/** The calls that the service runs now; `asks`: others wait for the client first. */
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
    // Gone since the model called it; the run will find that out and tell the model.
    if (tool === undefined) return { position, tool: 'unknown', timeoutMs: 0 }
    return { position, tool: tool.name, timeoutMs: tool.timeoutMs }
  })
}

export const awaitsClient = ({ policy, state }: PlannedCall): boolean => policy !== 'auto' && state === 'open'

/** A call as events and answers have it. */
export const presentCall = ({ id, name, arguments: args }: Pick<Call, 'id' | 'name' | 'arguments'>) => ({
  id,
  name,
  arguments: args,
})

export type CallResult = {
  status: 'success' | 'error' | 'timeout' | 'cancelled'
  /** The result's parts; only a success has them. */
  parts?: ContentPart[]
  error?: string
  durationMs?: number
}

type CallName = Pick<Call, 'id' | 'name' | 'displayName'>

export const callStarted = (iteration: number, execId: string, call: CallName & Pick<Call, 'arguments'>): NewEvent => ({
  type: 'tool.started',
  step: callStep(iteration, call.id),
  execId,
  data: { tool_call: presentCall(call), display_name: call.displayName },
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

/** How the calls of a step went; undefined when the step had none. */
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

/** Results for the calls of a turn that have none and will have none. */
export async function endOpenCalls(db: Prisma.TransactionClient, turnId: string, error: string): Promise<NewEvent[]> {
  const act = await readAct(db, turnId)
  if (act === undefined) return []
  const open = act.calls.filter(({ state }) => state !== 'completed')
  return open.map((call) => callCompleted(act.iteration, call.execId, call, { status: 'cancelled', error }))
}
