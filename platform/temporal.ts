import {
  Client,
  Connection,
  isGrpcServiceError,
  type ScheduleClient,
  ServiceError,
  type WorkflowHandle,
  WorkflowIdConflictPolicy,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client'
import type { TypedSearchAttributes } from '@temporalio/common'
import type { NativeConnection } from '@temporalio/worker'
import type { Logger } from 'pino'
import { toId } from '../contract/ids.ts'
import type { Retention } from '../domain/deps.ts'
import type { TemporalHealthReader } from '../domain/durable/health.ts'
import type { StartedTurn, TurnControl, TurnStarter } from '../domain/turns/turn-workflows.ts'
import { RESUME_SIGNAL, TURN_WORKFLOW } from '../workflows/messages.ts'
import type { Config } from './config.ts'
import { keepRetentionSchedule } from './schedules.ts'
import { registerTurnAttributes, type TurnAttributes } from './search-attributes.ts'
import { type Ask, createHealthReader } from './temporal-health.ts'

const CALL_TIMEOUT_MS = 5000
/** The library's own is two minutes: so long a Temporal that is back would not be found. */
const CHANNEL = { 'grpc.max_reconnect_backoff_ms': 5000 }
/** How long a dead worker holds up the first step of a turn that it had taken. */
const WORKFLOW_TASK_TIMEOUT_MS = 4000
/** Starts under way at once; more than that means Temporal is away, and the sweeper takes over. */
const MAX_STARTS = 500
/** Of gRPC's status codes. */
const INVALID_ARGUMENT = 3

export type Temporal = TurnControl & {
  startTurn: TurnStarter
  readHealth: TemporalHealthReader
  /** Resolves when Temporal answers; rejects within `timeoutMs` otherwise. */
  ping(timeoutMs: number): Promise<void>
  /** From now on turns start on this connection; with a worker on it in this process, they start eagerly. */
  useWorkerConnection(connection: NativeConnection | undefined): void
  /** Has what is kept for a time only deleted from now on, also when this process has ended; in the background. */
  scheduleRetention(retention: Pick<Retention, 'deltasMs'>): void
  close(): Promise<void>
}

/** Waits for nothing: the API takes messages also while Temporal is away. */
export function connectTemporal(
  config: Pick<Config, 'TEMPORAL_ADDRESS' | 'TEMPORAL_NAMESPACE' | 'TEMPORAL_TASK_QUEUE'>,
  log: Logger,
): Temporal {
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace, TEMPORAL_TASK_QUEUE: taskQueue } = config
  const connection = Connection.lazy({ address, connectTimeout: CALL_TIMEOUT_MS, channelArgs: CHANNEL })
  const { track, allSettled } = createTracker()
  const attributes = registerTurnAttributes(connection, namespace, log, track)
  const lazyClient = new Client({ connection, namespace })
  let eagerClient: Client | undefined
  const closing = new AbortController()
  const ask: Ask = (work) => {
    const client = eagerClient ?? lazyClient
    return track(client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () => work(client)))
  }
  const placeOn = (client: Client): Place => ({ taskQueue, requestEagerStart: client === eagerClient })

  return {
    startTurn: createStarter(ask, attributes, placeOn),
    ...createControl(ask),
    readHealth: createHealthReader(ask, { namespace, taskQueue }, log),
    ping: async (timeoutMs) => {
      await track(connection.withDeadline(Date.now() + timeoutMs, () => connection.workflowService.getSystemInfo({})))
    },
    useWorkerConnection: (native) => {
      eagerClient = native === undefined ? undefined : new Client({ connection: native, namespace })
    },
    scheduleRetention: (retention) => {
      const askAt = (work: (client: ScheduleClient) => Promise<void>) =>
        lazyClient.withDeadline(Date.now() + CALL_TIMEOUT_MS, () => work(lazyClient.schedule))
      void track(keepRetentionSchedule({ ask: askAt, taskQueue, log, signal: closing.signal }, retention))
    },
    close: async () => {
      closing.abort()
      // The library tries a failed call again after a pause, and on a closed connection that would end the process.
      await allSettled()
      await connection.close()
    },
  }
}

/** Knows what is asked of Temporal and has no answer yet. */
function createTracker() {
  const underWay = new Set<Promise<unknown>>()
  return {
    track<T>(asking: Promise<T>): Promise<T> {
      const settled: Promise<unknown> = asking.then(
        () => underWay.delete(settled),
        () => underWay.delete(settled),
      )
      underWay.add(settled)
      return asking
    },
    allSettled: (): Promise<unknown> => Promise.all(underWay),
  }
}

type Place = { taskQueue: string; requestEagerStart: boolean }

function createStarter(ask: Ask, attributes: TurnAttributes, placeOn: (client: Client) => Place): TurnStarter {
  let starting = 0
  const startWith = (client: Client, turn: StartedTurn, searchAttributes: TypedSearchAttributes | undefined) =>
    client.workflow.start(TURN_WORKFLOW, {
      ...startOptions(turn),
      ...placeOn(client),
      ...(searchAttributes && { typedSearchAttributes: searchAttributes }),
    })
  const start = async (client: Client, turn: StartedTurn) => {
    const searchAttributes = attributes.of(turn)
    try {
      await startWith(client, turn, searchAttributes)
    } catch (error) {
      // One of Temporal's servers may not know the attributes yet, or somebody has removed them.
      if (searchAttributes === undefined || !isRefused(error)) throw error
      attributes.refused(error)
      await startWith(client, turn, undefined)
    }
  }
  return async (turn) => {
    if (starting >= MAX_STARTS) throw new Error(`${MAX_STARTS} starts are waiting for Temporal`)
    starting++
    try {
      await ask((client) => start(client, turn))
    } finally {
      starting--
    }
  }
}

function createControl(ask: Ask): TurnControl {
  const askOf = <T>(turnId: string, work: (workflow: WorkflowHandle) => Promise<T>): Promise<T | undefined> =>
    ask((client) => unlessGone(work(client.workflow.getHandle(toId('turn', turnId)))))
  return {
    resumeTurn: (turnId) => askOf(turnId, (workflow) => workflow.signal(RESUME_SIGNAL)),
    cancelTurn: async (turnId) => {
      await askOf(turnId, (workflow) => workflow.cancel())
    },
    isTurnRunning: async (turnId) => {
      const description = await askOf(turnId, (workflow) => workflow.describe())
      return description !== undefined && OPEN.includes(description.status.name)
    },
  }
}

/** One that an operator has paused goes on some day. */
const OPEN = ['RUNNING', 'PAUSED']

/** The ids alone are the input: whatever else a caller's object holds must not get into a payload. */
function startOptions({ organizationId, sessionId, turnId, agentId }: StartedTurn) {
  return {
    workflowId: toId('turn', turnId),
    args: [{ organizationId, sessionId, turnId }],
    workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
    workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
    staticSummary: `turn of ${toId('session', sessionId)}`,
    memo: {
      session_id: toId('session', sessionId),
      organization_id: toId('org', organizationId),
      ...(agentId === null ? {} : { agent_id: toId('agent', agentId) }),
    },
  } satisfies Partial<WorkflowStartOptions>
}

const isRefused = (error: unknown): error is ServiceError =>
  error instanceof ServiceError && isGrpcServiceError(error.cause) && error.cause.code === INVALID_ARGUMENT

/** Resolves with undefined when the workflow was never started, or has ended. */
async function unlessGone<T>(asking: Promise<T>): Promise<T | undefined> {
  try {
    return await asking
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined
    throw error
  }
}
