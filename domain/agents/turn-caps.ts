import type { AgentLimits } from '../../contract/agents.ts'
import { invalid } from '../kit/errors.ts'

/** Size limit of one answer: far above what a model can produce, and small enough for one event. */
export const MAX_ANSWER_CHARACTERS = 8 * 1024 * 1024

/** Limits on turns. Undefined: there is none. */
export type TurnCaps = {
  /** Number of model calls of a turn. */
  maxTurnIterations: number
  /** Age of a turn, without the time in which it waits for its client, beyond which it makes no further model call. */
  maxTurnMs: number
  /** Number of tool calls of a turn. */
  maxToolCalls: number | undefined
  /** Output tokens of a turn, summed over its model calls. */
  maxOutputTokens: number | undefined
  /** Size of one answer, with its thinking and its tool calls. */
  maxAnswerCharacters: number
  /** Number of turns that run at once: of an organization in the installation, of an agent in its own limits. */
  maxRunningTurns: number | undefined
}

type Field = keyof AgentLimits

const MS = 1000

/** Returns the limits under which an agent's turns run: each is the lower one of its own and the installation's. */
export const capsOf = (installed: TurnCaps, own: AgentLimits): TurnCaps => ({
  maxTurnIterations: least(installed.maxTurnIterations, own.max_model_calls),
  maxTurnMs: least(installed.maxTurnMs, own.max_turn_seconds && own.max_turn_seconds * MS),
  maxToolCalls: least(installed.maxToolCalls, own.max_tool_calls),
  maxOutputTokens: least(installed.maxOutputTokens, own.max_output_tokens),
  maxAnswerCharacters: least(installed.maxAnswerCharacters, own.max_answer_characters),
  maxRunningTurns: least(installed.maxRunningTurns, own.max_running_turns),
})

const least = <T extends number | undefined>(installed: T, own: number | null | undefined): T | number =>
  own == null ? installed : Math.min(own, installed ?? own)

/**
 * Throws `invalid` for a limit above the installation's, which would have no effect. A value that the agent had `before`
 * stays: the installation's may have been lowered since.
 */
export function checkLimits(installed: TurnCaps, given: AgentLimits, before: AgentLimits): void {
  const most: Record<Field, number | undefined> = {
    max_turn_seconds: installed.maxTurnMs / MS,
    max_model_calls: installed.maxTurnIterations,
    max_tool_calls: installed.maxToolCalls,
    max_output_tokens: installed.maxOutputTokens,
    max_answer_characters: installed.maxAnswerCharacters,
    max_running_turns: installed.maxRunningTurns,
  }
  for (const [field, limit] of Object.entries(most) as [Field, number | undefined][]) {
    const value = given[field]
    if (value == null || limit === undefined || value <= limit || value === before[field]) continue
    throw invalid(`limits.${field}: must be at most ${limit}, the limit of this installation`)
  }
}

/** Returns an agent's limits as they are stored: without the ones that are null. */
export const givenLimits = (limits: AgentLimits | null | undefined): AgentLimits =>
  Object.fromEntries(Object.entries(limits ?? {}).filter(([, value]) => value !== null))
