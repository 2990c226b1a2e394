import { Client, Connection, type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client'
import { waitFor } from './http.ts'

/** Service whose Temporal a test queries. Without a configuration it is the Temporal server of the test run. */
export type TemporalPlace = { config?: { TEMPORAL_ADDRESS: string; TEMPORAL_NAMESPACE: string } }

/** Runs `work` with a Temporal client on its own connection, to observe the service's requests from outside. */
export async function withClient<T>({ config }: TemporalPlace, work: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address: config?.TEMPORAL_ADDRESS ?? process.env.TEMPORAL_ADDRESS })
  try {
    return await work(new Client({ connection, namespace: config?.TEMPORAL_NAMESPACE ?? 'default' }))
  } finally {
    await connection.close()
  }
}

/** Runs `work` with the workflow of a turn, once Temporal knows it: a busy process tells Temporal after a while. */
export const withWorkflow = <T>(
  service: TemporalPlace,
  turnId: string,
  work: (workflow: WorkflowHandle) => Promise<T>,
): Promise<T> =>
  withClient(service, async (client) => {
    const workflow = client.workflow.getHandle(turnId)
    await waitFor(() => workflow.describe().catch(() => undefined), `the workflow of ${turnId}`)
    return work(workflow)
  })

/** Where a step runs: in a workflow task at first, later as an activity. */
export type RunPlace = 'workflow_task' | 'activity'

/** Returns the process that runs a turn's step, in `place` if that is given. A worker's identity is `<pid>@<host>`. */
export const runnerPid = (service: TemporalPlace, turnId: string, place?: RunPlace): Promise<number | undefined> =>
  withClient(service, async (client) => {
    const workflow = client.workflow.getHandle(turnId)
    const description = await workflow.describe().catch((error) => {
      // A message is answered before its workflow is started.
      if (error instanceof WorkflowNotFoundError) return undefined
      throw error
    })
    const pending = description?.raw.pendingActivities?.find((activity) => activity.lastWorkerIdentity)
    const ofActivity = pending?.lastWorkerIdentity
    const ofTask = description?.raw.pendingWorkflowTask?.startedTime ? await lastTaskIdentity(workflow) : undefined
    const identity = place === 'workflow_task' ? ofTask : place === 'activity' ? ofActivity : (ofActivity ?? ofTask)
    return identity ? Number.parseInt(identity, 10) : undefined
  })

async function lastTaskIdentity(workflow: WorkflowHandle): Promise<string | null | undefined> {
  const { events } = await workflow.fetchHistory()
  const tasks = events?.flatMap(({ workflowTaskStartedEventAttributes: task }) => task ?? [])
  return tasks?.at(-1)?.identity
}

/** Returns the number of workflow runs for a turn, running or ended. */
export const workflowsOf = (service: TemporalPlace, turnId: string): Promise<number> =>
  withClient(service, async (client) => (await client.workflow.count(`WorkflowId = '${turnId}'`)).count)

/** Returns anything that Temporal answers as text, with payloads decoded. */
export function readable(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8')
  if (Array.isArray(value)) return value.map(readable).join('\n')
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .map(([key, inner]) => `${key}: ${readable(inner)}`)
    .join('\n')
}
