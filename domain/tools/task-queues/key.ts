import { type EncryptedColumn, placeOf } from '../../kit/secrets.ts'
import type { Deps } from '../deps.ts'
import type { QueueKey } from './sealing.ts'

/** Column of the keys that the workers of task queues share. */
export const TASK_QUEUE_KEYS: EncryptedColumn = { table: 'task_queues', keys: ['id'], column: 'key' }

export const encryptKey = ({ secrets }: Deps, id: string, key: string) =>
  secrets.encrypt(key, placeOf(TASK_QUEUE_KEYS, [id]))

/** Reads a key. Undefined when the organization has no such queue. Throws `UnreadableSecret`. */
export async function readQueueKey(deps: Deps, organizationId: string, name: string): Promise<QueueKey | undefined> {
  const row = await deps.db.taskQueue.findFirst({ where: { name, organizationId }, select: { id: true, key: true } })
  if (row === null) return undefined
  return { name, key: Buffer.from(deps.secrets.decrypt(row.key, placeOf(TASK_QUEUE_KEYS, [row.id])), 'base64') }
}
