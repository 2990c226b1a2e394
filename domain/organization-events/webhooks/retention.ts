import { deleteInBatches } from '../../../lib/delete-in-batches.ts'
import type { Deps } from './deps.ts'

/** Rows deleted at once: a body may have 256 KiB. */
const BATCH = 500

/**
 * Deletes deliveries that were created `olderThanMs` ago and are not pending, and what is left of deleted webhooks. Throws
 * the signal's reason when it aborts.
 */
export async function deleteOldDeliveries({ db }: Deps, olderThanMs: number, signal: AbortSignal): Promise<void> {
  const deleteOld = (limit: number) => db.$executeRaw`
    DELETE FROM webhook_deliveries WHERE position IN (
      SELECT position FROM webhook_deliveries
      WHERE created_at < now() - make_interval(secs => ${olderThanMs / 1000}) AND status <> 'pending'
      ORDER BY created_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
    )`
  await deleteInBatches(signal, deleteOld, BATCH)
  const deleted = await db.webhook.findMany({ where: { deletedAt: { not: null } }, select: { id: true }, take: BATCH })
  for (const { id } of deleted) {
    await removeDeliveries({ db }, id, signal)
    await db.webhook.deleteMany({ where: { id, lanes: { none: {} } } })
  }
}

/** Removes the deliveries of a webhook that is deleted. */
export const removeDeliveries = ({ db }: Pick<Deps, 'db'>, webhookId: string, signal: AbortSignal): Promise<number> =>
  deleteInBatches(
    signal,
    (limit) => db.$executeRaw`
      DELETE FROM webhook_deliveries WHERE position IN (
        SELECT position FROM webhook_deliveries WHERE webhook_id = ${webhookId}::uuid LIMIT ${limit}
      )`,
    BATCH,
  )
