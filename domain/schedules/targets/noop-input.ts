import { z } from 'zod'
import { jsonUpTo } from '../../../contract/kit/common.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import type { Deps } from '../deps.ts'
import { type CheckedInput, parseInput } from './target.ts'

const MAX_BYTES = 10 * 1024

const Input = jsonUpTo(z.record(z.string(), z.unknown()), MAX_BYTES).nullish()

/** Checks the input of a run without effect: any object, which is only stored. */
export async function checkNoop(_deps: Deps, _actor: Actor, input: unknown): Promise<CheckedInput> {
  // Parsed from JSON.
  return { input: (parseInput(Input, input) ?? {}) as Prisma.InputJsonObject, headers: {}, sessionId: null }
}
