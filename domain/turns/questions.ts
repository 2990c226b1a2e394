import { QUESTION_TOOL, QuestionAnswer } from '../../contract/turns.ts'
import { storableJson } from '../../lib/postgres-text.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { NewEvent } from '../events/log/append.ts'
import { callStep, newQuestionId, questionStep, stepSql } from '../events/log/steps.ts'
import type { Answers, InputRequired, Question } from '../tools/capabilities/questions.ts'
import type { CallResult } from './calls.ts'

/**
 * Questions of tools to their user. A run that asks is recorded as a tool.call_requested of its own, whose calls the
 * client answers like calls of its tools. Then the call is run again, with all answers so far.
 */

/** Number of runs in which a call may ask. */
const MAX_ROUNDS = 10

/** Record of a run that has asked. `claims` counts the call's attempts up to it; `keys` has each question's key, by id. */
type Asked = { call_id: string; claims: number; state?: string; keys: Record<string, string> }

/** A run that has asked, and the results of its questions, by their ids. */
export type Round = {
  asked: Asked
  results: Record<string, { status: CallResult['status']; error: string | null; result: { text?: string }[] | null }>
}

/** SQL for the rounds of all calls of a step, as one JSON value. */
export const roundsSql = (turnId: string, iteration: number): Prisma.Sql => Prisma.sql`(
  SELECT coalesce(jsonb_agg(jsonb_build_object('asked', asking.data -> 'asked', 'results', (
    SELECT coalesce(jsonb_object_agg(answer.data ->> 'tool_call_id', answer.data), '{}') FROM events answer
    WHERE answer.turn_id = asking.turn_id AND answer.type = 'tool.completed' AND answer.step IN (
      SELECT ${callStep(iteration, '')} || (call ->> 'id') FROM jsonb_array_elements(asking.data -> 'tool_calls') AS call
    )
  )) ORDER BY asking.sequence), '[]')
  FROM events asking
  WHERE asking.turn_id = ${turnId}::uuid AND asking.type = 'tool.call_requested'
    AND asking.step LIKE ${stepSql.questions(Prisma.sql`${String(iteration)}`)}
)`

/** Progress of a call's questions. */
export type Asking = {
  rounds: number
  /** Number of the call's attempts up to the last that asked. */
  claims: number
  /** True while the client has not answered all questions. */
  isOpen: boolean
  answers: Answers[]
  /** Result for the call when the client has no answer. */
  failure: CallResult | undefined
}

export function readAsking(rounds: Round[], callId: string): Asking {
  const own = rounds.filter(({ asked }) => asked.call_id === callId)
  const results = own.flatMap(({ asked, results }) => Object.keys(asked.keys).map((id) => results[id]))
  const isOpen = results.includes(undefined)
  const failed = results.find((result) => result !== undefined && result.status !== 'success')
  return {
    rounds: own.length,
    claims: own.at(-1)?.asked.claims ?? 0,
    isOpen,
    answers: isOpen || failed !== undefined ? [] : own.map(toAnswers),
    failure: failed && { status: failed.status, error: `${UNANSWERED} ${failed.error ?? ''}`.trim() },
  }
}

const UNANSWERED = 'The question of the tool to its user was not answered.'

/** Reads an answer, which submitToolResults has checked, without unknown fields. */
const toAnswer = (result: Round['results'][string] | undefined): QuestionAnswer =>
  QuestionAnswer.parse(JSON.parse(result?.result?.[0]?.text ?? ''))

const toAnswers = ({ asked, results }: Round): Answers => ({
  answers: Object.fromEntries(Object.entries(asked.keys).map(([id, key]) => [key, toAnswer(results[id])])),
  state: asked.state,
})

type AskingCall = { id: string; name: string; asking: Asking }

/** Returns the event that passes a run's questions to the client, or the call's result when it has asked too often. */
export function askClient(
  iteration: number,
  execId: string,
  { id: call_id, name, asking }: AskingCall,
  claims: number,
  { questions, state }: InputRequired,
): NewEvent | CallResult {
  const round = asking.rounds + 1
  if (round > MAX_ROUNDS) {
    return { status: 'error', error: `The tool asked its user ${MAX_ROUNDS} times and was not run again.` }
  }
  // Keys and state go back as they are, so they cannot be made storable.
  const given = { state, keys: questions.map(({ key }) => key) }
  if (questions.length === 0 || JSON.stringify(given) !== JSON.stringify(storableJson(given))) {
    return { status: 'error', error: 'The tool asked its user in a form that cannot be recorded.' }
  }
  const calls = questions.map((question) => ({ question, id: newQuestionId() }))
  const keys = Object.fromEntries(calls.map(({ id, question }) => [id, question.key]))
  const data = {
    tool_calls: calls.map(({ id, question }) => presentQuestion(id, { tool: name, tool_call_id: call_id }, question)),
    asked: { call_id, claims, ...(state === undefined ? {} : { state }), keys } satisfies Asked,
  }
  return { type: 'tool.call_requested', step: questionStep(iteration, round, call_id), execId, data }
}

const presentQuestion = (
  id: string,
  of: { tool: string; tool_call_id: string },
  { message, ...question }: Question,
) => {
  const what = 'url' in question ? { url: question.url } : { requested_schema: question.schema }
  return { id, name: QUESTION_TOOL, arguments: storableJson({ ...of, message, ...what }), kind: 'client_tool' }
}
