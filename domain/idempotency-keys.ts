import { createHash } from 'node:crypto'
import { deleteInBatches } from '../lib/delete-in-batches.ts'
import type { Actor } from './actor.ts'
import type { Deps } from './deps.ts'
import { conflict, DomainError } from './errors.ts'
import { newUuid } from './ids.ts'

/**
 * One run of a request that creates something. With an Idempotency-Key all its runs have one uuid, which what they create
 * has to get: what has it already was created by another of them.
 */
export type CreationAttempt = { uuid?: string }

/** `request` is what makes two requests the same, as JSON. */
export type KeyedRequest = { key: string; request: unknown }

type Reserved = { fingerprint: Uint8Array; uuid: string; answer: string | null; isRepeat: boolean }

/**
 * Runs `create` so that a request that comes several times creates one thing and has one answer, the first, whatever
 * dies when. The key reserves the id of what is created before anything happens; a run that finds the id taken answers
 * with what it finds; and of several runs the first one to get through says what the answer is. A mistake of the caller's
 * gives the key free, but not to a repetition: what it repeats may have got further. Throws `conflict` when the key came
 * with another request.
 */
export async function runOnce<T>(
  deps: Deps,
  actor: Actor,
  { key, request }: KeyedRequest,
  create: (attempt: CreationAttempt) => Promise<T>,
): Promise<T> {
  const fingerprint = createHash('sha256').update(JSON.stringify(request)).digest()
  const reserved = await reserve(deps, actor, key, fingerprint)
  if (!fingerprint.equals(reserved.fingerprint)) {
    throw conflict('Idempotency-Key: it came with another request already; use a new one for each')
  }
  // Written by keepAnswer for a request like this one.
  if (reserved.answer !== null) return JSON.parse(reserved.answer) as T
  const { uuid, isRepeat } = reserved
  try {
    const answer = await create({ uuid })
    return JSON.parse(await keepAnswer(deps, actor, { key, fingerprint, uuid, answer: JSON.stringify(answer) })) as T
  } catch (error) {
    if (error instanceof DomainError && !isRepeat) await release(deps, actor, key, uuid)
    throw error
  }
}

async function reserve(deps: Deps, actor: Actor, key: string, fingerprint: Uint8Array): Promise<Reserved> {
  const { organizationId, userId } = actor
  // A key that is older than its time is a new one, also before retention has been there.
  await deps.db.$executeRaw`
    DELETE FROM idempotency_keys
    WHERE organization_id = ${organizationId}::uuid AND user_id = ${userId}::uuid AND key = ${key}
      AND created_at < now() - make_interval(secs => ${deps.retention.idempotencyKeysMs / 1000})`
  const uuid = newUuid()
  const [row] = await deps.db.$queryRaw<Omit<Reserved, 'isRepeat'>[]>`
    INSERT INTO idempotency_keys (organization_id, user_id, key, fingerprint, uuid)
    VALUES (${organizationId}::uuid, ${userId}::uuid, ${key}, ${fingerprint}, ${uuid}::uuid)
    ON CONFLICT (organization_id, user_id, key) DO UPDATE SET key = excluded.key
    RETURNING fingerprint, uuid, answer`
  if (row === undefined) throw new Error('An Idempotency-Key was neither stored nor found.')
  return { ...row, isRepeat: row.uuid !== uuid }
}

/** The answer of the run that was the first to get through. */
async function keepAnswer(
  deps: Deps,
  { organizationId, userId }: Actor,
  { key, fingerprint, uuid, answer }: { key: string; fingerprint: Uint8Array; uuid: string; answer: string },
): Promise<string> {
  const [row] = await deps.db.$queryRaw<{ answer: string }[]>`
    INSERT INTO idempotency_keys AS known (organization_id, user_id, key, fingerprint, uuid, answer)
    VALUES (${organizationId}::uuid, ${userId}::uuid, ${key}, ${fingerprint}, ${uuid}::uuid, ${answer})
    ON CONFLICT (organization_id, user_id, key) DO UPDATE SET answer = coalesce(known.answer, excluded.answer)
    WHERE known.uuid = excluded.uuid
    RETURNING answer`
  return row?.answer ?? answer
}

async function release(deps: Deps, { organizationId, userId }: Actor, key: string, uuid: string): Promise<void> {
  await deps.db.idempotencyKey.deleteMany({ where: { organizationId, userId, key, uuid, answer: null } })
}

/** Deletes keys whose time is over; returns how many. Throws the signal's reason when it aborts. */
export const deleteOldKeys = (deps: Deps, olderThanMs: number, signal: AbortSignal): Promise<number> =>
  deleteInBatches(
    signal,
    (limit) => deps.db.$executeRaw`
      DELETE FROM idempotency_keys WHERE (organization_id, user_id, key) IN (
        SELECT organization_id, user_id, key FROM idempotency_keys
        WHERE created_at < now() - make_interval(secs => ${olderThanMs / 1000})
        ORDER BY created_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
      )`,
  )
