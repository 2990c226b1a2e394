import type { Prisma, Schedule } from '../../../prisma/generated/client.ts'
import { conflict } from '../../kit/errors.ts'
import { UnreadableSecret } from '../../kit/secrets.ts'
import { keepsValues } from '../../kit/sent-headers.ts'
import type { Deps } from '../deps.ts'
import { encryptHeaders, readHeaders } from './headers.ts'
import { mergeRequestHeaders, requireSameServer } from './http-request-input.ts'
import type { CheckedTarget } from './registry.ts'

export type TargetColumns = Pick<Schedule, 'targetType' | 'targetName' | 'targetHeaders' | 'sessionId'> & {
  targetInput: Prisma.InputJsonObject
}

/**
 * Returns the columns of a schedule's target. Header values of `***` are taken from `before`. Throws `invalid` if they
 * are missing there or belong to another server, and `conflict` if they are damaged.
 */
export function targetColumns(deps: Deps, scheduleId: string, target: CheckedTarget, before?: Schedule): TargetColumns {
  const stored = keepsValues(target.headers) && before !== undefined ? storedFor(deps, before, target) : {}
  return {
    targetType: target.type,
    targetName: target.name,
    targetInput: target.input,
    targetHeaders: encryptHeaders(deps, scheduleId, mergeRequestHeaders(target.headers, stored)),
    sessionId: target.sessionId,
  }
}

function storedFor(deps: Deps, before: Schedule, { input }: CheckedTarget): Record<string, string> {
  if (before.targetHeaders === null) return {}
  requireSameServer(urlOf(input), urlOf(before.targetInput))
  try {
    return readHeaders(deps, before)
  } catch (error) {
    if (!(error instanceof UnreadableSecret) || !error.isDamaged) throw error
    throw conflict('The stored headers of the schedule are damaged and cannot be read; send their values again')
  }
}

// Only requests have headers; their URL was checked when it was written.
const urlOf = (input: Prisma.InputJsonObject | Prisma.JsonValue): string => (input as { url: string }).url
