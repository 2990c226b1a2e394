import { Client, Connection, WorkflowNotFoundError } from '@temporalio/client'

/** A service of whose Temporal a test asks; a shared service has the one of the run. */
export type TemporalPlace = { config?: { TEMPORAL_ADDRESS: string; TEMPORAL_NAMESPACE: string } }

/** What the service asks of Temporal is looked at from outside, on a connection of the test's own. */
export async function withClient<T>({ config }: TemporalPlace, work: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address: config?.TEMPORAL_ADDRESS ?? process.env.TEMPORAL_ADDRESS })
  try {
    return await work(new Client({ connection, namespace: config?.TEMPORAL_NAMESPACE ?? 'default' }))
  } finally {
    await connection.close()
  }
}

/** The process that runs the pending step of a turn. A worker's identity is `<pid>@<host>`. */
export const runnerPid = (service: TemporalPlace, turnId: string): Promise<number | undefined> =>
  withClient(service, async (client) => {
    const description = await client.workflow
      .getHandle(turnId)
      .describe()
      .catch((error) => {
        // A message is answered before its workflow is started.
        if (error instanceof WorkflowNotFoundError) return undefined
        throw error
      })
    const pending = description?.raw.pendingActivities?.find((activity) => activity.lastWorkerIdentity)
    return pending?.lastWorkerIdentity ? Number.parseInt(pending.lastWorkerIdentity, 10) : undefined
  })

/** How many workflows have run, or run, for a turn. */
export const workflowsOf = (service: TemporalPlace, turnId: string): Promise<number> =>
  withClient(service, async (client) => (await client.workflow.count(`WorkflowId = '${turnId}'`)).count)

/** Whatever Temporal answers, as text; payloads decoded. */
export function readable(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8')
  if (Array.isArray(value)) return value.map(readable).join('\n')
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .map(([key, inner]) => `${key}: ${readable(inner)}`)
    .join('\n')
}
