import type { PutTaskQueueRequest, TaskQueue } from '../../../contract/task-queues.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit, audited } from '../../kit/audit/entry.ts'
import { invalid, notFound, quotaExceeded } from '../../kit/errors.ts'
import { newUuid } from '../../kit/ids.ts'
import { lockOrganization } from '../../kit/lock-organization.ts'
import type { Deps } from '../deps.ts'
import { encryptKey } from './key.ts'
import { presentTaskQueue } from './read.ts'

const MAX_TASK_QUEUES = 100
/** Prefix of the names that Temporal keeps for itself. */
const OF_TEMPORAL = 'temporal-sys'

/**
 * Registers a task queue, or replaces the key of one. Throws `invalid` for a queue of the service or of Temporal, and
 * `conflict` beyond the limit.
 */
export async function putTaskQueue(
  deps: Deps,
  actor: Actor,
  name: string,
  { encryption_key }: PutTaskQueueRequest,
): Promise<TaskQueue> {
  if (name === deps.ownTaskQueue || name.toLowerCase().startsWith(OF_TEMPORAL)) {
    throw invalid(`task_queue: "${name}" is a queue of the service itself or of Temporal; choose another name`)
  }
  const { organizationId } = actor
  return deps.db.$transaction(async (tx) => {
    await lockOrganization(tx, organizationId)
    const before = await tx.taskQueue.findFirst({ where: { name, organizationId }, select: { id: true } })
    if (before === null) await requirePlace(tx, organizationId)
    const id = before?.id ?? newUuid()
    const stored = { key: encryptKey(deps, id, encryption_key), updatedAt: new Date() }
    const create = { id, organizationId, name, ...stored }
    const row = await tx.taskQueue.upsert({ where: { id }, create, update: stored })
    await audit(tx, actor, { action: 'task_queue.register', target: id, details: { name } })
    return presentTaskQueue(row)
  })
}

async function requirePlace(tx: Prisma.TransactionClient, organizationId: string): Promise<void> {
  if ((await tx.taskQueue.count({ where: { organizationId } })) < MAX_TASK_QUEUES) return
  throw quotaExceeded(`The organization has ${MAX_TASK_QUEUES} task queues, which is the limit; remove one first`)
}

/** Removes a task queue. Throws `not_found`. */
export async function deleteTaskQueue(deps: Deps, actor: Actor, name: string): Promise<void> {
  const where = { name, organizationId: actor.organizationId }
  const found = await deps.db.taskQueue.findFirst({ where, select: { id: true } })
  if (found === null) throw notFound('Task queue')
  const told = { action: 'task_queue.delete', target: found.id, details: { name } } as const
  await audited(deps, actor, told, async (tx) => {
    const { count } = await tx.taskQueue.deleteMany({ where: { ...where, id: found.id } })
    if (count === 0) throw notFound('Task queue')
  })
}
