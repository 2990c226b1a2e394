import { deleteInBatches } from '../../lib/delete-in-batches.ts'
import type { Deps } from '../turns/deps.ts'
import { numberEvents } from './read.ts'

/** Number of organizations whose events are numbered together. */
const ORGANIZATIONS = 100

/**
 * Numbers the events of organizations that nobody follows, so that a first reader need not, and deletes the numbered
 * events that are older than `olderThanMs`. Notes the highest deleted sequence of each organization, so that a reader is
 * told of its gap. Returns the number deleted. Throws the signal's reason when it aborts.
 */
export async function deleteOldOrganizationEvents(
  deps: Deps,
  olderThanMs: number,
  signal: AbortSignal,
): Promise<number> {
  await numberAll(deps, signal)
  return deleteInBatches(signal, (limit) => deleteSome(deps, olderThanMs, limit))
}

/** Leaves organizations whose row is locked, and everything after a second round without progress. */
async function numberAll(deps: Deps, signal: AbortSignal): Promise<void> {
  for (let sum = -1n; ; ) {
    signal.throwIfAborted()
    const found = await deps.db.$queryRaw<{ id: string }[]>`
      SELECT DISTINCT organization_id AS id FROM organization_events WHERE sequence IS NULL LIMIT ${ORGANIZATIONS}`
    if (found.length === 0) return
    const numbered = await numberEvents(
      deps,
      found.map(({ id }) => id),
    )
    const now = [...numbered.values()].reduce((total, { last }) => total + last, 0n)
    if (now === sum) return
    sum = now
  }
}

async function deleteSome({ db }: Deps, olderThanMs: number, limit: number): Promise<number> {
  const [deleted] = await db.$queryRaw<{ count: number }[]>`
    WITH deleted AS (
      DELETE FROM organization_events WHERE position IN (
        SELECT position FROM organization_events
        WHERE created_at < now() - make_interval(secs => ${olderThanMs / 1000}) AND sequence IS NOT NULL
        ORDER BY created_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
      ) RETURNING organization_id, sequence
    ), locked AS (
      SELECT id FROM organizations WHERE id IN (SELECT organization_id FROM deleted) ORDER BY id FOR NO KEY UPDATE
    ), noted AS (
      UPDATE organizations o SET expired_event = greatest(
        expired_event, (SELECT max(sequence) FROM deleted WHERE organization_id = o.id)
      )
      WHERE id IN (SELECT id FROM locked)
    )
    SELECT count(*)::int AS count FROM deleted`
  return deleted?.count ?? 0
}
