import { Client, Connection, WorkflowIdConflictPolicy, WorkflowIdReusePolicy } from '@temporalio/client'
import type { NativeConnection } from '@temporalio/worker'
import { toId } from '../domain/ids.ts'
import type { TurnStarter } from '../domain/turns/start.ts'
import { TURN_WORKFLOW, type TurnInput } from '../workflows/messages.ts'
import type { Config } from './config.ts'

const START_TIMEOUT_MS = 5000
/** How long a dead worker holds up the first step of a turn that it had taken. */
const WORKFLOW_TASK_TIMEOUT_MS = 4000
/** Starts under way at once; more than that means Temporal is away, and the sweeper takes over. */
const MAX_STARTS = 500

export type Temporal = {
  startTurn: TurnStarter
  /** Resolves when Temporal answers; rejects within `timeoutMs` otherwise. */
  ping(timeoutMs: number): Promise<void>
  /** From now on turns start on this connection; with a worker on it in this process, they start eagerly. */
  useWorkerConnection(connection: NativeConnection | undefined): void
  close(): Promise<void>
}

/** Connects when first needed: the API takes messages also while Temporal is away. */
export function connectTemporal(
  config: Pick<Config, 'TEMPORAL_ADDRESS' | 'TEMPORAL_NAMESPACE' | 'TEMPORAL_TASK_QUEUE'>,
): Temporal {
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = config
  const connection = Connection.lazy({ address, connectTimeout: START_TIMEOUT_MS })
  const lazyClient = new Client({ connection, namespace })
  let eagerClient: Client | undefined
  let starting = 0

  // The ids alone: whatever else a caller's object holds must not get into a payload.
  const start = async ({ organizationId, sessionId, turnId }: TurnInput) => {
    const client = eagerClient ?? lazyClient
    await client.withDeadline(Date.now() + START_TIMEOUT_MS, () =>
      client.workflow.start(TURN_WORKFLOW, {
        workflowId: toId('turn', turnId),
        taskQueue: config.TEMPORAL_TASK_QUEUE,
        args: [{ organizationId, sessionId, turnId }],
        workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
        workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
        workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
        staticSummary: `turn of ${toId('session', sessionId)}`,
        memo: { session_id: toId('session', sessionId), organization_id: toId('org', organizationId) },
        requestEagerStart: eagerClient !== undefined,
      }),
    )
  }

  return {
    startTurn: async (turn) => {
      if (starting >= MAX_STARTS) throw new Error(`${MAX_STARTS} starts are waiting for Temporal`)
      starting++
      try {
        await start(turn)
      } finally {
        starting--
      }
    },
    ping: async (timeoutMs) => {
      await connection.withDeadline(Date.now() + timeoutMs, () => connection.workflowService.getSystemInfo({}))
    },
    useWorkerConnection: (native) => {
      eagerClient = native === undefined ? undefined : new Client({ connection: native, namespace })
    },
    close: () => connection.close(),
  }
}
