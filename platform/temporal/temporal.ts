import {
  Client,
  Connection,
  type ScheduleClient,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowHandle,
  WorkflowIdConflictPolicy,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client'
import type { NativeConnection } from '@temporalio/worker'
import type { Logger } from 'pino'
import { toId } from '../../contract/kit/ids.ts'
import type { Retention } from '../../domain/deps.ts'
import type { LanePlace, WebhookControl } from '../../domain/organization-events/webhooks/deps.ts'
import type { Clock } from '../../domain/schedules/clock/clock.ts'
import type { ExecutionControl, StartedExecution } from '../../domain/schedules/clock/execution-workflows.ts'
import type { StartedTurn, TurnControl, TurnStarter } from '../../domain/turns/turn-workflows.ts'
import type { TemporalHealthReader } from '../../domain/upkeep/health/health.ts'
import { createFairQueue } from '../../lib/fair-queue.ts'
import { sleep } from '../../lib/sleep.ts'
import { processIn } from '../../lib/worker-identity.ts'
import {
  EXECUTION_WORKFLOW,
  type ExecutionInput,
  type LaneInput,
  RESUME_SIGNAL,
  TURN_WORKFLOW,
  type TurnInput,
  WEBHOOK_WORKFLOW,
} from '../../workflows/messages.ts'
import type { Config } from '../config.ts'
import { explainFailures } from './check.ts'
import { createClock } from './clock.ts'
import { type TemporalSettings, temporalOptions } from './connection.ts'
import { keepRetentionSchedule } from './schedules.ts'
import { type Attributes, type Labels, registerAttributes } from './search-attributes.ts'
import { type Ask, createHealthReader } from './temporal-health.ts'

const CALL_TIMEOUT_MS = 5000
/**
 * Limit of the reconnect delay. With the library's default of two minutes, a Temporal that is back would go unnoticed
 * for that long.
 */
const CHANNEL = { 'grpc.max_reconnect_backoff_ms': 5000 }
/** Workflow task timeout: the time for which a dead worker delays the first step of a turn that it had taken. */
const WORKFLOW_TASK_TIMEOUT_MS = 2500
/**
 * Workflows that are started or signalled at once. Temporal serves requests in the order of arrival, so an owner's
 * thousands wait here, where owners take turns.
 */
const ASKED = { atOnce: 32, ofOwner: 4 }
/** The same for cancelling, which nobody waits for: the record has the turn's end, and the attempt reads it there. */
const CANCELLED = { atOnce: 8, ofOwner: 1 }
/** Limits on waiting requests. The sweepers repeat requests beyond them, or that wait longer than `WAIT_MS`. */
const WAITING = { maxWaiting: 20_000, maxWaitingOfOwner: 10_000 }
const WAIT_MS = 10 * 60_000
/** Time for which a turn that has been started keeps its place until an activity waits for it. */
const KEPT_MS = 1000

export type Temporal = TurnControl &
  ExecutionControl &
  WebhookControl & {
    clock: Clock
    startTurn: TurnStarter
    readHealth: TemporalHealthReader
    /** Resolves when Temporal answers; rejects within `timeoutMs` otherwise. */
    ping(timeoutMs: number): Promise<void>
    /**
     * Starts turns on this connection from now on, eagerly if a worker in this process uses it. Undefined switches back.
     */
    useWorkerConnection(connection: NativeConnection | undefined): void
    /** Announces that this process has a worker. */
    expectWorker(): void
    /** Returns `ok` when this process's worker polls; undefined when it has none. */
    workerState(): string | undefined
    /** Schedules retention in the background. Temporal then runs it even after this process has ended. */
    scheduleRetention(retention: Pick<Retention, 'deltasMs'>): void
    close(): Promise<void>
  }

/**
 * Connects to Temporal without waiting for it: the API accepts messages even while Temporal is away. Throws ConfigError
 * for settings that cannot be used.
 */
export function connectTemporal(config: TemporalSettings & Pick<Config, 'TEMPORAL_TASK_QUEUE'>, log: Logger): Temporal {
  const { TEMPORAL_NAMESPACE: namespace, TEMPORAL_TASK_QUEUE: taskQueue } = config
  const options = temporalOptions(config)
  const connection = Connection.lazy({ ...options, connectTimeout: CALL_TIMEOUT_MS, channelArgs: CHANNEL })
  const { track, allSettled } = createTracker()
  const attributes = registerAttributes(connection, namespace, log, track)
  const lazyClient = new Client({ connection, namespace })
  let isWorker = false
  let eagerClient: Client | undefined
  const closing = new AbortController()
  void track(explainFailures({ options, connection, namespace }, log, closing.signal))
  const ask: Ask = (work) => {
    const client = eagerClient ?? lazyClient
    return track(client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () => work(client)))
  }
  const startOptionsOn = (client: Client): StartOptions => ({ taskQueue, requestEagerStart: client === eagerClient })

  const inTurn = takeTurns(ASKED, closing.signal)
  const cancelInTurn = takeTurns(CANCELLED, closing.signal)
  return {
    startTurn: createStarter(ask, attributes, startOptionsOn, inTurn),
    ...createControl(ask, namespace, inTurn, cancelInTurn),
    ...createExecutionControl(ask, attributes, taskQueue, inTurn),
    wakeWebhook: (lane, owner) =>
      inTurn(owner, `wake ${lane.webhookId}/${lane.laneId}`, () => wakeWebhook(ask, taskQueue, lane)),
    clock: createClock(ask, attributes, { namespace, taskQueue }),
    readHealth: createHealthReader(ask, { namespace, taskQueue }, log),
    ping: async (timeoutMs) => {
      await track(connection.withDeadline(Date.now() + timeoutMs, () => connection.workflowService.getSystemInfo({})))
    },
    useWorkerConnection: (native) => {
      eagerClient = native === undefined ? undefined : new Client({ connection: native, namespace })
    },
    expectWorker: () => {
      isWorker = true
    },
    workerState: () => {
      if (!isWorker) return undefined
      return eagerClient === undefined ? 'does not poll' : 'ok'
    },
    scheduleRetention: (retention) => {
      const askAt = (work: (client: ScheduleClient) => Promise<void>) =>
        lazyClient.withDeadline(Date.now() + CALL_TIMEOUT_MS, () => work(lazyClient.schedule))
      void track(keepRetentionSchedule({ ask: askAt, taskQueue, log, signal: closing.signal }, retention))
    },
    close: async () => {
      closing.abort()
      // The library retries a failed call after a pause, and on a closed connection that would end the process.
      await allSettled()
      await connection.close()
    },
  }
}

/** Keeps track of the calls to Temporal that have not settled yet. */
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

/**
 * Sends a request to Temporal when it is the owner's turn. A request that is repeated while it waits is sent once. The
 * owner's place is kept until `goneOn` settles, at most for `KEPT_MS`.
 */
type InTurn = <T>(owner: string, what: string, asking: () => Promise<T>, goneOn?: Promise<unknown>) => Promise<T>

function takeTurns({ atOnce, ofOwner }: typeof ASKED, signal: AbortSignal): InTurn {
  const slots = createFairQueue(atOnce, WAIT_MS, { maxOfOwner: ofOwner, ...WAITING })
  const waiting = new Map<string, Promise<unknown>>()
  const askInTurn = async <T>(owner: string, what: string, asking: () => Promise<T>, goneOn?: Promise<unknown>) => {
    const isIn = await slots.enter({ owner }, signal).finally(() => waiting.delete(what))
    if (!isIn) throw new Error('too much of one owner waits for Temporal')
    try {
      // A call on a connection that was closed meanwhile would never end.
      signal.throwIfAborted()
      return await asking()
    } finally {
      void Promise.race([goneOn, goneOn && sleep(KEPT_MS, signal)]).then(() => slots.leave({ owner }))
    }
  }
  return <T>(owner: string, what: string, asking: () => Promise<T>, goneOn?: Promise<unknown>) => {
    const known = waiting.get(what)
    if (known !== undefined) return known as Promise<T>
    const asked = askInTurn(owner, what, asking, goneOn)
    waiting.set(what, asked)
    return asked
  }
}

type StartOptions = { taskQueue: string; requestEagerStart: boolean }

function createStarter(
  ask: Ask,
  attributes: Attributes,
  startOptionsOn: (client: Client) => StartOptions,
  inTurn: InTurn,
): TurnStarter {
  const start = (turn: StartedTurn) =>
    ask((client) =>
      attributes.startWith(labelsOf(turn), (searchAttributes) =>
        client.workflow.start(TURN_WORKFLOW, {
          ...startOptions(turn),
          ...startOptionsOn(client),
          ...(searchAttributes && { typedSearchAttributes: searchAttributes }),
        }),
      ),
    )
  return async (turn, owner, goneOn) => {
    await inTurn(owner, `start ${turn.turnId}`, () => start(turn), goneOn)
  }
}

const labelsOf = ({ sessionId, agentId, organizationId }: StartedTurn): Labels => ({
  SessionId: toId('session', sessionId),
  AgentId: agentId && toId('agent', agentId),
  OrganizationId: toId('org', organizationId),
})

function createControl(ask: Ask, namespace: string, inTurn: InTurn, cancelInTurn: InTurn): TurnControl {
  const askOf = <T>(turnId: string, work: (workflow: WorkflowHandle) => Promise<T>): Promise<T | undefined> =>
    ask((client) => unlessGone(work(client.workflow.getHandle(toId('turn', turnId)))))
  return {
    resumeTurn: (turnId, owner) =>
      inTurn(owner, `resume ${turnId}`, () => askOf(turnId, (workflow) => workflow.signal(RESUME_SIGNAL))),
    cancelTurn: (turnId, owner) =>
      cancelInTurn(owner, turnId, async () => {
        await askOf(turnId, (workflow) => workflow.cancel())
      }),
    releaseActivities: async (workflowId, isLost, type) => {
      const description = await ask((client) => unlessGone(client.workflow.getHandle(workflowId).describe()))
      const started = (description?.raw.pendingActivities ?? []).filter(
        ({ state, activityType }) => state === ACTIVITY_STARTED && (type === undefined || activityType?.name === type),
      )
      let released = 0
      for (const { activityId, attempt, lastWorkerIdentity } of started) {
        const process = processIn(lastWorkerIdentity)
        if (process === undefined || !(await isLost(process, `${workflowId}/${activityId}/${attempt}`))) continue
        // The workflow's next task would wait for a second in the queue of the process that had its last one.
        if (released++ === 0) await ask((client) => forgetProcess(client, namespace, workflowId))
        const activity = { namespace, workflowId, runId: description?.runId, activityId }
        await ask((client) => failActivity(client, activity))
      }
      return released > 0
    },
    readActivity: async (turnId, activityId) => {
      const description = await askOf(turnId, (workflow) => workflow.describe())
      const found = description?.raw.pendingActivities?.find((activity) => activity.activityId === activityId)
      return found && { heartbeat: found.heartbeatDetails?.payloads?.[0] }
    },
    hasPoller: async (name) => {
      const queue = { namespace, taskQueue: { name }, taskQueueType: WORKFLOW_QUEUE }
      const { pollers } = await ask((client) => client.workflowService.describeTaskQueue(queue))
      return (pollers ?? []).length > 0
    },
    readTurnState: async (turnId) => {
      const description = await askOf(turnId, (workflow) => workflow.describe())
      if (description === undefined) return 'unknown'
      return OPEN.includes(description.status.name) ? 'running' : 'closed'
    },
  }
}

/** temporal.api.enums.v1.TaskQueueType */
const WORKFLOW_QUEUE = 1
/** temporal.api.enums.v1.PendingActivityState */
const ACTIVITY_STARTED = 2
/** A gRPC status code. */
const NOT_FOUND = 5

/** Sends the workflow's next task to any process. */
const forgetProcess = (client: Client, namespace: string, workflowId: string): Promise<unknown> =>
  unlessNotFound(client.workflowService.resetStickyTaskQueue({ namespace, execution: { workflowId } }))

type ActivityPlace = { namespace: string; workflowId: string; runId: string | undefined; activityId?: string | null }

/** Fails an attempt of an activity, which Temporal then tries again at once. It may have ended meanwhile. */
const failActivity = (client: Client, { runId = '', ...place }: ActivityPlace): Promise<unknown> => {
  const applicationFailureInfo = { type: 'process_died', nextRetryDelay: { nanos: 10_000_000 } }
  const failure = { message: 'its process has died', applicationFailureInfo }
  return unlessNotFound(client.workflowService.respondActivityTaskFailedById({ ...place, runId, failure }))
}

const unlessNotFound = (call: Promise<unknown>): Promise<unknown> =>
  call.catch((error: { code?: unknown }) => {
    if (error.code !== NOT_FOUND) throw error
  })

function createExecutionControl(ask: Ask, attributes: Attributes, taskQueue: string, inTurn: InTurn): ExecutionControl {
  const askOf = <T>(id: string, work: (workflow: WorkflowHandle) => Promise<T>): Promise<T | undefined> =>
    ask((client) => unlessGone(work(client.workflow.getHandle(id))))
  const start = (execution: StartedExecution) =>
    ask((client) =>
      attributes.startWith(labelsOfExecution(execution), async (searchAttributes) => {
        const options = {
          ...executionOptions(execution),
          taskQueue,
          ...(searchAttributes && { typedSearchAttributes: searchAttributes }),
        }
        try {
          await client.workflow.start(EXECUTION_WORKFLOW, options)
          return true
        } catch (error) {
          if (error instanceof WorkflowExecutionAlreadyStartedError) return false
          throw error
        }
      }),
    )
  return {
    startExecution: (execution, owner) => inTurn(owner, `start ${execution.executionId}`, () => start(execution)),
    notifyExecution: async (id) => {
      await askOf(id, (workflow) => workflow.signal(RESUME_SIGNAL))
    },
    isExecutionRunning: async (id) => {
      const description = await askOf(id, (workflow) => workflow.describe())
      return description !== undefined && OPEN.includes(description.status.name)
    },
  }
}

const labelsOfExecution = ({ scheduleId, sessionId, organizationId }: StartedExecution): Labels => ({
  ScheduleId: scheduleId,
  SessionId: sessionId && toId('session', sessionId),
  OrganizationId: toId('org', organizationId),
})

/** Statuses of a workflow that has not ended. A workflow that an operator has paused can be resumed. */
const OPEN = ['RUNNING', 'PAUSED']

/**
 * Builds the start options. The input consists of the ids alone, so that nothing else in a caller's object gets into a
 * payload.
 */
function startOptions({ organizationId, sessionId, turnId, agentId }: StartedTurn) {
  return {
    workflowId: toId('turn', turnId),
    args: [
      {
        organizationId: toId('org', organizationId),
        sessionId: toId('session', sessionId),
        turnId: toId('turn', turnId),
      } satisfies TurnInput,
    ],
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

/** An execution's workflow starts once, and not again after its end. */
function executionOptions(execution: StartedExecution) {
  const { executionId, scheduleId, organizationId, sessionId, targetName, scheduledAt } = execution
  const organization_id = toId('org', organizationId)
  return {
    workflowId: executionId,
    args: [{ organizationId: organization_id, scheduleId, executionId } satisfies ExecutionInput],
    workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
    workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
    staticSummary: `${targetName} · ${scheduledAt.toISOString()} · schedule ${scheduleId}`,
    memo: {
      schedule_id: scheduleId,
      organization_id,
      ...(sessionId === null ? {} : { session_id: toId('session', sessionId) }),
    },
  } satisfies Partial<WorkflowStartOptions>
}

/**
 * Starts the workflow of a lane, or signals a running workflow: in one call, for between two of them it may end. A lane has
 * many workflows, one after the other.
 */
async function wakeWebhook(ask: Ask, taskQueue: string, lane: LanePlace): Promise<void> {
  const webhookId = toId('webhook', lane.webhookId)
  const input = { organizationId: toId('org', lane.organizationId), webhookId, laneId: lane.laneId } satisfies LaneInput
  await ask((client) =>
    client.workflow.signalWithStart(WEBHOOK_WORKFLOW, {
      ...{ workflowId: `${webhookId}/${lane.laneId}`, taskQueue, args: [input], signal: RESUME_SIGNAL },
      workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
      staticSummary: `deliveries of ${webhookId}`,
      memo: { webhook_id: webhookId, organization_id: input.organizationId },
    }),
  )
}

/** Resolves with undefined when the workflow was never started, or has ended. */
async function unlessGone<T>(asking: Promise<T>): Promise<T | undefined> {
  try {
    return await asking
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined
    throw error
  }
}
