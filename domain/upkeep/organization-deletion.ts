import { deleteInBatches } from '../../lib/delete-in-batches.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import { unlessGone } from '../kit/errors.ts'
import { removeDeliveries } from '../organization-events/webhooks/retention.ts'
import { deleteSchedule } from '../schedules/delete.ts'
import { inShareSql } from '../turns/run/process-lease.ts'
import type { Deps } from './deps.ts'
import { removeSession } from './session-deletion/delete-session.ts'

/** Number of organizations whose contents one sweep removes, and of sessions and schedules that it reads at once. */
const ORGANIZATIONS = 5
const PAGE = 50
/** Tables of an organization with the number of rows that one statement removes: images have megabytes each. */
const CONTENTS = [
  ['images', 20],
  ['skills', 20],
  ['idempotency_keys', 2000],
  ['agents', 1000],
  ['audit_entries', 2000],
  ['usage_hours', 2000],
  ['organization_events', 2000],
] as const

/**
 * Removes the contents of deleted organizations, and then their rows once nothing is under way there. Returns how many
 * were left. Meant to be called periodically, and may be killed at any time. Throws the signal's reason when it aborts.
 */
export async function sweepDeletedOrganizations(deps: Deps, signal: AbortSignal): Promise<number> {
  const deleted = await deps.db.$queryRaw<{ id: string }[]>`
    SELECT id FROM organizations WHERE deleted_at IS NOT NULL AND ${inShareSql(deps, Prisma.sql`id`)}
    ORDER BY deleted_at LIMIT ${ORGANIZATIONS}`
  let failure: { reason: unknown } | undefined
  // An organization that cannot be emptied does not hold up the others, and nothing of theirs goes on meanwhile.
  for (const remove of [endWork, removeContents]) {
    for (const { id } of deleted) {
      signal.throwIfAborted()
      await remove(deps, id, signal).catch((reason: unknown) => {
        failure ??= { reason }
      })
    }
  }
  if (failure !== undefined) throw failure.reason
  return deleted.length
}

/** Deletes the schedules, and the sessions whose turns have not ended. */
async function endWork(deps: Deps, organizationId: string, signal: AbortSignal): Promise<void> {
  const { db } = deps
  const schedules = () => db.schedule.findMany({ where: { organizationId, deletedAt: null }, take: PAGE })
  await eachOf(schedules, signal, ({ id }) => unlessGone(deleteSchedule(deps, { organizationId }, id)))
  const where = { organizationId, turns: { some: { finishedAt: null } } }
  const sessions = () => db.session.findMany({ where, take: PAGE, select: { id: true } })
  await eachOf(sessions, signal, ({ id }) => removeSession(deps, organizationId, id))
}

async function removeContents(deps: Deps, organizationId: string, signal: AbortSignal): Promise<void> {
  const { db } = deps
  const sessions = () => db.session.findMany({ where: { organizationId }, take: PAGE, select: { id: true } })
  await eachOf(sessions, signal, ({ id }) => removeSession(deps, organizationId, id))
  for (const [name, batch] of CONTENTS) {
    const table = Prisma.raw(name)
    const removeSome = (limit: number) => db.$executeRaw`
      DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ${table} WHERE organization_id = ${organizationId}::uuid LIMIT ${limit}
      ))`
    await deleteInBatches(signal, removeSome, batch)
  }
  const removeExecutions = (limit: number) => db.$executeRaw`
    DELETE FROM schedule_executions WHERE id IN (
      SELECT e.id FROM schedules s JOIN schedule_executions e ON e.schedule_id = s.id
      WHERE s.organization_id = ${organizationId}::uuid AND s.deleted_at IS NOT NULL
        AND e.status IN ('completed', 'failed', 'skipped')
      LIMIT ${limit}
    )`
  await deleteInBatches(signal, removeExecutions)
  const webhooks = await db.webhook.findMany({ where: { organizationId }, select: { id: true } })
  for (const { id } of webhooks) await removeDeliveries(deps, id, signal)
  // A schedule's row is needed until its clock in Temporal is gone.
  await db.$executeRaw`
    DELETE FROM organizations o WHERE id = ${organizationId}::uuid AND deleted_at IS NOT NULL
      AND NOT EXISTS (SELECT FROM sessions WHERE organization_id = o.id)
      AND NOT EXISTS (
        SELECT FROM schedules s WHERE organization_id = o.id AND (
          deleted_at IS NULL OR clock_due_at IS NOT NULL
          OR EXISTS (SELECT FROM schedule_executions WHERE schedule_id = s.id AND status IN ('pending', 'running'))))`
}

/** Reads a page after the other, and removes each of its rows, until none is left. */
async function eachOf<Row>(
  read: () => Promise<Row[]>,
  signal: AbortSignal,
  remove: (row: Row) => Promise<void>,
): Promise<void> {
  for (let rows = await read(); rows.length > 0; rows = await read()) {
    for (const row of rows) {
      signal.throwIfAborted()
      await remove(row)
    }
  }
}
