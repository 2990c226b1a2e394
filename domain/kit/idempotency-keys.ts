import { createHash } from 'node:crypto'
import { deleteInBatches } from '../../lib/delete-in-batches.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from './actor.ts'
import type { Deps } from './deps.ts'
import { conflict, DomainError } from './errors.ts'
import { newUuid } from './ids.ts'

/**
 * One run of a request that creates something. With an Idempotency-Key, all runs have the same uuid, which is stored
 * with the new object. An object that already has it was created by another run. `isFirst`: no run came before.
 */
export type CreationAttempt = { uuid?: string; isFirst?: boolean }

/** Request with an Idempotency-Key. `request` is its identity, as JSON: equal values are the same request. */
export type KeyedRequest = {
  key: string
  request: unknown
  /** Keeps no answer, because `create` makes it again from the object that has the uuid. */
  isFound?: boolean
}

type Reserved = { fingerprint: Uint8Array; uuid: string; answer: string | null; isRepeat: boolean }

/**
 * Runs `create` so that a repeated request creates one object and always gets the first answer, whichever process fails
 * and when. The key first reserves the new object's id. A run that finds the id taken answers with that object. The
 * first run to finish determines the answer. An error of the caller releases the key, except in a repetition, because
 * an earlier run may have got further. Throws `conflict` when the key was used for a different request.
 */
export async function runOnce<T>(
  deps: Deps,
  actor: Actor,
  { key, request, isFound = false }: KeyedRequest,
  create: (attempt: CreationAttempt) => Promise<T>,
): Promise<T> {
  const fingerprint = createHash('sha256').update(JSON.stringify(request)).digest()
  const reserved = await reserve(deps, actor, key, fingerprint)
  if (!fingerprint.equals(reserved.fingerprint)) {
    throw conflict(
      'Idempotency-Key: was already used for a different request; use a new one for each request',
      'idempotency_key_reused',
    )
  }
  // Written by keepAnswer for an equal request.
  if (reserved.answer !== null) return JSON.parse(reserved.answer) as T
  const { uuid, isRepeat } = reserved
  try {
    const answer = await create({ uuid, isFirst: !isRepeat })
    if (isFound) return answer
    return JSON.parse(await keepAnswer(deps, actor, { key, fingerprint, uuid, answer: JSON.stringify(answer) })) as T
  } catch (error) {
    if (error instanceof DomainError && !isRepeat && !isFound) await release(deps, actor, key, uuid)
    throw error
  }
}

async function reserve(deps: Deps, actor: Actor, key: string, fingerprint: Uint8Array): Promise<Reserved> {
  const { organizationId, userId } = actor
  const uuid = newUuid()
  // The commit of the new object writes the log before it as well, so a key is never lost without its object.
  // An expired key counts as a new one, even before retention has deleted it.
  const isOld = Prisma.sql`known.created_at < now() - make_interval(secs => ${deps.retention.idempotencyKeysMs / 1000})`
  const [row] = await deps.db.$queryRaw<Omit<Reserved, 'isRepeat'>[]>`
    INSERT INTO idempotency_keys AS known (organization_id, user_id, key, fingerprint, uuid)
    SELECT ${organizationId}::uuid, ${userId}::uuid, ${key}, ${fingerprint}, ${uuid}::uuid
    FROM set_config('synchronous_commit', 'off', true)
    ON CONFLICT (organization_id, user_id, key) DO UPDATE SET
      fingerprint = CASE WHEN ${isOld} THEN excluded.fingerprint ELSE known.fingerprint END,
      uuid = CASE WHEN ${isOld} THEN excluded.uuid ELSE known.uuid END,
      answer = CASE WHEN ${isOld} THEN NULL ELSE known.answer END,
      created_at = CASE WHEN ${isOld} THEN excluded.created_at ELSE known.created_at END
    RETURNING fingerprint, uuid, answer`
  if (row === undefined) throw new Error('An Idempotency-Key was neither stored nor found.')
  return { ...row, isRepeat: row.uuid !== uuid }
}

/** Stores the answer, and returns the answer of the first run to finish. */
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

/** Time after which a key can be forgotten, so that a new reservation of it is not. */
const FORGET_SECS = 1

/** Forgets a key, whose next request counts as a new one. */
export async function forgetKey(deps: Deps, { organizationId, userId }: Actor, key: string): Promise<void> {
  await deps.db.$executeRaw`
    DELETE FROM idempotency_keys
    WHERE organization_id = ${organizationId}::uuid AND user_id = ${userId}::uuid AND key = ${key}
      AND created_at < now() - make_interval(secs => ${FORGET_SECS})`
}

/** Deletes expired keys and returns their number. Throws the signal's reason when it aborts. */
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
