import { Prisma } from '../../../prisma/generated/client.ts'
import { newUuid } from '../../kit/ids.ts'

/**
 * Names of a turn's steps, by which events, attempts and spans are related:
 *
 *     reason:<iteration>          a model call, counted from 1
 *     reason:<iteration>:<n>      its n-th failed attempt, after which it is retried; only reason.retrying has this name
 *     act:<iteration>             the tool calls of its answer, all together
 *     progress:<iteration>:<claim>:<n>:<call id>  the n-th report of a run of a call; only tool.progress has this name
 *     act:<iteration>:<n>:<call id>  the n-th time that a call asks its user; only tool.call_requested has this name
 *     steer:<message uuid>        a message that joined the running turn; only input.message has this name
 *     tool:<iteration>:<call id>  one of the calls, or the question of one; the id is the model's and may be anything,
 *                                 colons included
 *
 * An event of the whole turn has the step ''. The SQL function pending_calls repeats the names.
 */
export type Step =
  | { kind: 'reason' | 'act'; iteration: number }
  | { kind: 'tool' | 'question'; iteration: number; callId: string }

export const reasonStep = (iteration: number): string => `reason:${iteration}`
/** Returns the name under which a failed attempt at a model call is recorded once. */
export const attemptStep = (iteration: number, attempt: number): string => `${reasonStep(iteration)}:${attempt}`
export const actStep = (iteration: number): string => `act:${iteration}`
export const callStep = (iteration: number, callId: string): string => `tool:${iteration}:${callId}`

/** Returns the name under which a call's questions are recorded once. */
export const questionStep = (iteration: number, round: number, callId: string): string =>
  `${actStep(iteration)}:${round}:${callId}`

/** Returns the name of the question by which a turn asks for budget before a model call, or a LIKE pattern of all. */
export const budgetStep = (iteration: number | '%'): string => `act:${iteration}:1:budget`

/** Returns the name under which a report of a call's run is recorded once. `claim` counts the runs. */
export const progressStep = (iteration: number, claim: number, report: number, callId: string): string =>
  `progress:${iteration}:${claim}:${report}:${callId}`

/** Beginning of the steps of messages that joined their turn. */
export const steerSteps = 'steer:'
export const steerStep = (messageUuid: string): string => steerSteps + messageUuid
export const isSteerStep = (step: string): boolean => step.startsWith(steerSteps)

/** Prefix of the ids of questions, which no call of a model has. */
const QUESTION_PREFIX = 'question_'
export const newQuestionId = (): string => QUESTION_PREFIX + newUuid().replaceAll('-', '')
export const isQuestionId = (id: string): boolean => id.startsWith(QUESTION_PREFIX)

/** Parses a step's name. Returns undefined for the step of the whole turn, and for unknown names. */
export function parseStep(step: string): Step | undefined {
  const [, kind, digits, callId] = /^(reason|act|tool):(\d+)(?::(.*))?$/s.exec(step) ?? []
  const iteration = Number(digits)
  if (kind === 'tool' && callId !== undefined) return { kind, iteration, callId }
  const asker = kind === 'act' ? /^\d+:(.*)$/s.exec(callId ?? '')?.[1] : undefined
  if (asker !== undefined) return { kind: 'question', iteration, callId: asker }
  return (kind === 'reason' || kind === 'act') && callId === undefined ? { kind, iteration } : undefined
}

/**
 * Returns the step that an event belongs to: the model call of an attempt, the call of a report, else the named step.
 */
export function ownStep(name: string): string {
  const [, iteration, callId] = /^progress:(\d+):\d+:\d+:(.*)$/s.exec(name) ?? []
  if (callId !== undefined) return callStep(Number(iteration), callId)
  return /^(reason:\d+):\d+$/.exec(name)?.[1] ?? name
}

/** Returns a LIKE pattern for the steps of all calls of an iteration. */
export const callSteps = (iteration: number): string => callStep(iteration, '%')

/** SQL for names of steps whose iteration only the database knows. */
export const stepSql = {
  iterationOf: (step: Prisma.Sql) => Prisma.sql`split_part(${step}, ':', 2)`,
  reason: (iteration: Prisma.Sql) => Prisma.sql`'reason:' || ${iteration}`,
  calls: (iteration: Prisma.Sql) => Prisma.sql`'tool:' || ${iteration} || ':%'`,
  isQuestion: (step: Prisma.Sql) => Prisma.sql`${step} ~ ${Prisma.raw(`'^tool:[0-9]+:${QUESTION_PREFIX}'`)}`,
  questions: (iteration: Prisma.Sql) => Prisma.sql`'act:' || ${iteration} || ':%'`,
}
