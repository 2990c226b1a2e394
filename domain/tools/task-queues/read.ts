import type { TaskQueue } from '../../../contract/task-queues.ts'
import type { ToolDefinition } from '../../../contract/tools.ts'
import type { TaskQueue as TaskQueueRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { invalid } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'

type Row = Pick<TaskQueueRow, 'name' | 'createdAt' | 'updatedAt'>

const COLUMNS = { name: true, createdAt: true, updatedAt: true } as const

export const presentTaskQueue = ({ name, createdAt, updatedAt }: Row): TaskQueue => ({
  name,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
})

/** Lists the task queues of the organization, by name. Their number is limited. */
export async function listTaskQueues({ db }: Deps, { organizationId }: Actor): Promise<TaskQueue[]> {
  const rows = await db.taskQueue.findMany({ where: { organizationId }, select: COLUMNS, orderBy: { name: 'asc' } })
  return rows.map(presentTaskQueue)
}

/**
 * Throws `invalid` for a tool whose task queue the organization has not registered. Tools that were there `before` are
 * accepted: their calls fail.
 */
export async function checkTaskQueues(
  { db }: Pick<Deps, 'db'>,
  { organizationId }: Pick<Actor, 'organizationId'>,
  tools: ToolDefinition[],
  before: ToolDefinition[] = [],
): Promise<void> {
  const queueOf = (tool: ToolDefinition) => (tool.type === 'temporal' ? tool.task_queue : undefined)
  const had = new Set(before.map(queueOf))
  const named = new Set(tools.map(queueOf).filter((name) => name !== undefined && !had.has(name)))
  if (named.size === 0) return
  const names = [...named].filter((name) => name !== undefined)
  const known = await db.taskQueue.findMany({ where: { organizationId, name: { in: names } }, select: { name: true } })
  const position = tools.findIndex((tool) => {
    const queue = queueOf(tool)
    return queue !== undefined && named.has(queue) && !known.some(({ name }) => name === queue)
  })
  if (position === -1) return
  const way = 'GET /v1/task-queues lists them, and an administrator registers one by PUT /v1/task-queues/{task_queue}'
  throw invalid(`tools.${position}.task_queue: no such task queue is registered; ${way}`)
}
