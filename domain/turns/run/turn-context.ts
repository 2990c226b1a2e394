import type { AgentLimits } from '../../../contract/agents.ts'
import type { TokenUsage } from '../../../contract/kit/common.ts'
import { type Message, StoredControls, textOf } from '../../../contract/messages.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../../../contract/tools.ts'
import { truncate } from '../../../lib/truncate.ts'
import { Prisma, type TurnAdmission, type TurnStatus } from '../../../prisma/generated/client.ts'
import { givenSchema } from '../../agents/output-schema.ts'
import { capsOf, type TurnCaps } from '../../agents/turn-caps.ts'
import { steeredThrough } from '../../conversation/place-steers.ts'
import type { ConversationPage } from '../../conversation/read.ts'
import { beginReading, type ConversationReading, NO_CONVERSATION } from '../../conversation/turn-conversation.ts'
import { budgetStep, parseStep } from '../../events/log/steps.ts'
import { toId } from '../../kit/ids.ts'
import type { CatalogueModel } from '../../models/llm/catalogue.ts'
import { chooseModel, type Stored, storedSql } from '../../models/llm/choose.ts'
import type { AnswerFailure, ProviderData } from '../../models/llm/model.ts'
import { hasBudgetsSql } from '../../spending/reserve.ts'
import type { MessageSecrets } from '../../tools/call-secrets/places.ts'
import { type ResolvedCapability, resolveCapabilities } from '../../tools/capabilities/resolve.ts'
import { withinToolLimit } from '../../tools/capabilities/tool-limit.ts'
import {
  type ApprovedTools,
  approveTools,
  buildToolset,
  mergeDefinitions,
  type Toolset,
  withoutTakers,
} from '../../tools/capabilities/toolset.ts'
import { guardTools } from '../../tools/registry/guard.ts'
import { readCapabilities } from '../../tools/registry/read.ts'
import type { Deps } from '../deps.ts'
import type { TurnPlace } from '../turn-place.ts'
import { livesSql } from './process-lease.ts'

/** The data that a step of a turn works with. */
export type TurnContext = TurnPlace & {
  status: TurnStatus
  iterations: number
  usage: TokenUsage
  /** Cost of the turn so far in USD. Null when a price is unknown. */
  costUsd: string | null
  startedAt: Date | null
  /** Place among the turns that run at once. Null while the turn has asked for none. */
  admission: TurnAdmission | null
  /** Whether the turn answers a call of another agent's turn. */
  isChild: boolean
  traceparent: string | null
  harnessId: string
  agentId: string | null
  modelId: string | null
  /** The agent's own prompt; see `readSystemPrompt`. */
  agentPrompt: string
  capabilities: ResolvedCapability[]
  toolset: Toolset
  /** JSON Schema of the turn's output. Undefined for a turn without. */
  outputSchema: Record<string, unknown> | undefined
  /** Limits under which the turn runs. */
  caps: TurnCaps
  /** Undefined when every model that could serve is disabled. */
  model: CatalogueModel | undefined
  reasoningEffort: string | undefined
  /** Whether the turn summarises the conversation, instead of answering it. */
  compacts: boolean
  /** Messages as events hold them: without `secrets`. */
  messages: Message[]
  /** Data that providers need back with their answers, by the id of the message. */
  providerData: ReadonlyMap<string, ProviderData>
  secrets: MessageSecrets
  /** Sequence of the latest message that joined the turn, or 0. */
  steeredThrough: number
  /** Text of the message that the turn answers, truncated for summaries. */
  inputContent: string
  /** Number of model calls that the session made before this turn. */
  earlierCalls: number
  /** Whether the turn counts towards a budget, and how often it has asked for more: each time instead of a model call. */
  hasBudgets: boolean
  budgetQuestions: number
  /**
   * State left by earlier attempts of the step: the fence of the latest if there was one, whether any has claimed
   * the step, whether the process lives in
   * which that runs without an activity, how many answers failed, the waits between them in ms, the last error, and the
   * success recorded in `reason.completed`, null while there is none.
   */
  attempts: {
    fence: number | undefined
    isClaimed: boolean
    holderLives: boolean
    failures: number
    waitedMs: number
    succeeded: boolean | null
    error: string | null
    errorCode: AnswerFailure | null
    /** Whether the step has asked for more budget and not called its model. */
    hasAskedForBudget: boolean
  }
}

type Row = Configuration & {
  controls: unknown
  status: TurnStatus
  iterations: number
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheCreationTokens: number
  costUsd: string | null
  startedAt: Date | null
  admission: TurnAdmission | null
  isChild: boolean
  steerSequence: number | null
  traceparent: string | null
  harnessId: string
  agentId: string | null
  modelId: string | null
  agentModelId: string | null
  agentLimits: AgentLimits | null
  outputSchema: Record<string, unknown> | null
  storedModels: Stored
  earlierCalls: number
  hasBudgets: boolean
  budgetQuestions: string[]
  fence: number | null
  isClaimed: boolean
  holderLives: boolean
  failures: number | null
  waitedMs: number | null
  error: string | null
  errorCode: AnswerFailure | null
  succeeded: boolean | null
  conversation: ConversationPage | null
}

/**
 * Prompt, capabilities and tools as agent and session configure them. Without an agent, its fields are null, and its lists
 * also with a draft in its place.
 */
export type Configuration = {
  systemPrompt: string | null
  agentCapabilities: AgentCapabilityConfig[] | null
  agentTools: ToolDefinition[] | null
  sessionCapabilities: AgentCapabilityConfig[]
  sessionTools: ToolDefinition[]
  approvedTools: ApprovedTools
}

export const configurationSql = Prisma.sql`coalesce(s.draft_prompt, v.system_prompt) AS "systemPrompt",
  CASE WHEN s.draft_prompt IS NULL THEN v.capabilities END AS "agentCapabilities",
  CASE WHEN s.draft_prompt IS NULL THEN v.tools END AS "agentTools",
  s.capabilities AS "sessionCapabilities", s.tools AS "sessionTools",
  s.approved_tools AS "approvedTools"`

/** The version `v` of the agent that a turn `t` of a session `s` runs. */
export const agentVersionSql = Prisma.sql`
  LEFT JOIN agents a ON a.organization_id = s.organization_id AND a.id = s.agent_id
  LEFT JOIN agent_versions v ON v.organization_id = a.organization_id AND v.agent_id = a.id
    AND v.version = coalesce(t.agent_version, a.version)`

/** Resolves capabilities and tools. With `toolName`, only the MCP server that has this tool is read. */
export async function configure(
  deps: Deps,
  organizationId: string,
  row: Configuration,
  { toolName }: { toolName?: string } = {},
): Promise<Pick<TurnContext, 'capabilities' | 'toolset'>> {
  const refs = [...(row.agentCapabilities ?? []), ...row.sessionCapabilities]
  const resolved = resolveCapabilities(refs, await readCapabilities(deps, organizationId, refs, { toolName }))
  const agentTools = withoutTakers(resolved, row.agentTools ?? [])
  const sessionTools = withoutTakers(resolved, row.sessionTools)
  const definitions = mergeDefinitions(agentTools, sessionTools)
  const guarded = await guardTools(deps, organizationId, resolved, definitions)
  const capabilities = withinToolLimit(guarded, definitions)
  const toolset = approveTools(buildToolset(capabilities, agentTools, sessionTools), row.approvedTools)
  return { capabilities, toolset }
}

/** Loads the data of a step, with the conversation. Null when the turn's session is gone. */
export const loadTurn = (deps: Deps, turn: TurnPlace, step: string): Promise<TurnContext | null> =>
  load(deps, turn, step, beginReading(deps, turn))

/**
 * Loads the data of a step that calls no model: without the conversation, so that it works however long that is. Null
 * when the turn's session is gone.
 */
export const loadTurnAlone = (deps: Deps, turn: TurnPlace, step: string): Promise<TurnContext | null> =>
  load(deps, turn, step)

async function load(
  deps: Deps,
  turn: TurnPlace,
  step: string,
  reading?: ConversationReading,
): Promise<TurnContext | null> {
  const [row] = await readTurn(deps, turn, step, reading?.sql ?? Prisma.sql`NULL`)
  if (row === undefined) {
    deps.conversations.delete(turn.sessionId)
    return null
  }
  const { messages, providerData, secrets } =
    reading && row.conversation ? await reading.complete(row.conversation) : NO_CONVERSATION
  const controls = StoredControls.safeParse(row.controls).data
  return {
    ...turn,
    status: row.status,
    iterations: row.iterations,
    usage: {
      input_tokens: row.inputTokens,
      output_tokens: row.outputTokens,
      cache_read_tokens: row.cacheReadTokens,
      cache_creation_tokens: row.cacheCreationTokens,
    },
    costUsd: row.costUsd,
    startedAt: row.startedAt,
    admission: row.admission,
    isChild: row.isChild,
    traceparent: row.traceparent,
    harnessId: row.harnessId,
    agentId: row.agentId,
    modelId: row.modelId,
    agentPrompt: row.systemPrompt ?? '',
    ...(await configure(deps, turn.organizationId, row)),
    outputSchema: givenSchema(row.outputSchema),
    caps: capsOf(deps.limits, row.agentLimits ?? {}),
    model: chooseModel(deps.models.predefined, row.storedModels, [controls?.model_id, row.modelId, row.agentModelId]),
    reasoningEffort: controls?.reasoning?.effort ?? undefined,
    compacts: controls?.compact === true,
    messages,
    providerData,
    secrets,
    // Its latest messages may lie before the part that was read.
    steeredThrough: Math.max(row.steerSequence ?? 0, steeredThrough(messages, turn.turnId)),
    inputContent: inputText(messages, turn.turnId),
    earlierCalls: row.earlierCalls,
    hasBudgets: row.hasBudgets,
    budgetQuestions: row.budgetQuestions.length,
    attempts: {
      fence: row.fence ?? undefined,
      isClaimed: row.isClaimed,
      holderLives: row.holderLives,
      failures: row.failures ?? 0,
      waitedMs: row.waitedMs ?? 0,
      succeeded: row.succeeded,
      error: row.error,
      errorCode: row.errorCode,
      hasAskedForBudget: row.budgetQuestions.includes(budgetStep(parseStep(step)?.iteration ?? 0)),
    },
  }
}

function inputText(messages: Message[], turnId: string): string {
  const input = messages.find((message) => message.id === toId('message', turnId))
  return truncate(textOf(input?.content ?? []))
}

/** SQL for the ids of the models that message, session and agent name. Controls hold one in its form on the wire. */
const NAMED_MODELS = [
  Prisma.sql`right(t.controls ->> 'model_id', 32)::uuid`,
  Prisma.sql`s.model_id`,
  Prisma.sql`v.default_model_id`,
]

const readTurn = (
  deps: Deps,
  { organizationId, sessionId, turnId }: TurnPlace,
  step: string,
  conversation: Prisma.Sql,
) => deps.db.$queryRaw<Row[]>`
  SELECT t.controls, t.status::text, t.iterations, t.started_at AS "startedAt", t.traceparent, t.admission::text, t.ancestors IS NOT NULL AS "isChild",
    t.steer_sequence AS "steerSequence",
    t.input_tokens::float8 AS "inputTokens", t.output_tokens::float8 AS "outputTokens",
    t.cost_usd::text AS "costUsd",
    t.cache_read_tokens::float8 AS "cacheReadTokens", t.cache_creation_tokens::float8 AS "cacheCreationTokens",
    s.harness_id AS "harnessId", s.agent_id AS "agentId", s.model_id AS "modelId",
    coalesce(t.output_schema, v.output_schema) AS "outputSchema",
    ${configurationSql}, v.default_model_id AS "agentModelId", a.limits AS "agentLimits",
    (SELECT coalesce(sum(iterations), 0)::int FROM turns WHERE session_id = s.id AND input_sequence < t.input_sequence)
      AS "earlierCalls",
    ${hasBudgetsSql} AS "hasBudgets",
    ARRAY(SELECT step FROM events WHERE turn_id = t.id AND type = 'tool.call_requested'
      AND step LIKE ${budgetStep('%')}) AS "budgetQuestions",
    ${storedSql(deps.models.predefined, NAMED_MODELS)} AS "storedModels",
    p.fence::float8, coalesce(p.claims, 0) > 0 AS "isClaimed", ${livesSql(Prisma.sql`-p.fence`)} AS "holderLives", p.failures, p.waited_ms AS "waitedMs", p.error,
    p.error_code AS "errorCode",
    (SELECT (data ->> 'success')::boolean FROM events
      WHERE turn_id = t.id AND type = 'reason.completed' AND step = ${step}) AS succeeded,
    ${conversation} AS conversation
  FROM turns t JOIN sessions s ON s.id = t.session_id JOIN organizations o ON o.id = s.organization_id
  ${agentVersionSql}
  LEFT JOIN turn_steps p ON p.turn_id = t.id AND p.step = ${step}
  WHERE t.id = ${turnId}::uuid AND s.id = ${sessionId}::uuid AND s.organization_id = ${organizationId}::uuid`
