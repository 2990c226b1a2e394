import { taskQueueEndpoints } from '../../contract/task-queues.ts'
import type { Deps } from '../../domain/deps.ts'
import { deleteTaskQueue, putTaskQueue } from '../../domain/tools/task-queues/change.ts'
import { listTaskQueues } from '../../domain/tools/task-queues/read.ts'
import { type Handle, reply } from '../http/handle.ts'

export function taskQueueRoutes(handle: Handle, deps: Deps): void {
  handle(taskQueueEndpoints.list, async ({ actor }) => reply(200, { data: await listTaskQueues(deps, actor) }))
  handle(taskQueueEndpoints.put, async ({ actor, params, body }) =>
    reply(200, await putTaskQueue(deps, actor, params.task_queue, body)),
  )
  handle(taskQueueEndpoints.delete, async ({ actor, params }) => {
    await deleteTaskQueue(deps, actor, params.task_queue)
    return reply(204, undefined)
  })
}
