import { Prisma } from '../../prisma/generated/client.ts'

/**
 * The names of a turn's steps, by which events, attempts and spans belong together:
 *
 *     reason:<iteration>          a model call, counted from 1
 *     act:<iteration>             the tool calls of its answer, all together
 *     tool:<iteration>:<call id>  one of them; the id is the model's and may be anything, colons included
 *
 * An event of the whole turn has the step ''. The SQL function pending_calls spells the names too.
 */
export type Step = { kind: 'reason' | 'act'; iteration: number } | { kind: 'tool'; iteration: number; callId: string }

export const reasonStep = (iteration: number): string => `reason:${iteration}`
export const actStep = (iteration: number): string => `act:${iteration}`
export const callStep = (iteration: number, callId: string): string => `tool:${iteration}:${callId}`

/** Undefined for the step of the whole turn, and for names that are none of these. */
export function parseStep(step: string): Step | undefined {
  const [, kind, digits, callId] = /^(reason|act|tool):(\d+)(?::(.*))?$/s.exec(step) ?? []
  const iteration = Number(digits)
  if (kind === 'tool' && callId !== undefined) return { kind, iteration, callId }
  return (kind === 'reason' || kind === 'act') && callId === undefined ? { kind, iteration } : undefined
}

/** A pattern for LIKE: the steps of all calls of an iteration. */
export const callSteps = (iteration: number): string => callStep(iteration, '%')

/** The same names where only the statement knows the iteration. */
export const stepSql = {
  iterationOf: (step: Prisma.Sql) => Prisma.sql`split_part(${step}, ':', 2)`,
  reason: (iteration: Prisma.Sql) => Prisma.sql`'reason:' || ${iteration}`,
  calls: (iteration: Prisma.Sql) => Prisma.sql`'tool:' || ${iteration} || ':%'`,
}
