import { z } from 'zod'
import { DateTime, listOf } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { TaskQueueName } from './temporal-tools.ts'

const KEY_BYTES = 32

/** Whether a text is 32 bytes in base64. */
function isKey(text: string): boolean {
  // The right ones have 44 characters.
  if (text.length > 2 * KEY_BYTES) return false
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === KEY_BYTES && bytes.toString('base64') === text
}

export const TaskQueue = z
  .object({ name: z.string(), created_at: DateTime, updated_at: DateTime })
  .meta({ id: 'TaskQueue' })
export type TaskQueue = z.infer<typeof TaskQueue>

const PutTaskQueueRequest = z
  .object({
    encryption_key: z
      .string()
      .refine(isKey, { error: 'must be 32 random bytes in base64; openssl rand -base64 32 makes them' })
      .meta({ description: 'Key that the workers of the queue share: 32 random bytes in base64.' }),
  })
  .meta({ id: 'PutTaskQueueRequest' })
export type PutTaskQueueRequest = z.infer<typeof PutTaskQueueRequest>

const params = z.object({ task_queue: TaskQueueName })

export const taskQueueEndpoints = group(
  { tag: 'task-queues', path: '/v1/task-queues', access: 'admin' },
  {
    list: {
      operationId: 'listTaskQueues',
      method: 'GET',
      access: 'member',
      summary: 'Lists the Temporal task queues on which tools may run, by name',
      description: 'No operation returns their keys.',
      responses: { 200: listOf(TaskQueue) },
    },
    put: {
      operationId: 'putTaskQueue',
      method: 'PUT',
      at: '/{task_queue}',
      summary: 'Registers a Temporal task queue for tools of the type temporal, or replaces its key',
      description:
        'The key encrypts arguments, results and errors on their way through Temporal, as AES-256-GCM. It is stored encrypted.',
      params,
      body: PutTaskQueueRequest,
      responses: { 200: TaskQueue },
      errors: [409],
    },
    delete: {
      operationId: 'deleteTaskQueue',
      method: 'DELETE',
      at: '/{task_queue}',
      summary: 'Removes a task queue; later calls of its tools fail',
      params,
      responses: { 204: null },
    },
  },
)
