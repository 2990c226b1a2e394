import type { WireEvent } from '../../contract/events.ts'
import type { Deps } from '../../domain/deps.ts'
import { appendEvents, type NewEvent, type Writer } from '../../domain/events/log/append.ts'
import type { Actor } from '../../domain/kit/actor.ts'
import { ANONYMOUS_USER_UUID, DEFAULT_ORGANIZATION_UUID, newUuid, toId } from '../../domain/kit/ids.ts'
import type { Metrics } from '../../domain/kit/metrics.ts'
import { createMessage } from '../../domain/messages/create.ts'
import { createSession } from '../../domain/sessions/create.ts'
import { RENEW_LEASE } from '../../domain/turns/run/lease-sql.ts'
import { processPlace } from '../../lib/process-place.ts'
import { processName } from '../../lib/worker-identity.ts'
import { toUuid } from './ids.ts'

/** Actor of requests to a service without sign-in. */
export const ANYBODY: Actor = {
  organizationId: DEFAULT_ORGANIZATION_UUID,
  userId: ANONYMOUS_USER_UUID,
  role: 'admin',
  apiKeyId: null,
}

/** Creates a session with a message whose turn only the test itself writes to. */
export async function createOpenTurn(deps: Deps): Promise<{ id: string; writer: Writer }> {
  const { id } = await createSession(deps, ANYBODY, {})
  const { turnUuid } = await postUnanswered(deps, id, 'Hello')
  return { id, writer: { sessionId: toUuid(id), turnId: turnUuid } }
}

const nothing = () => {}
/** Metrics that measure nothing, for a test that replaces some. */
export const NO_METRICS: Metrics = {
  recorded: nothing,
  attempted: nothing,
  retried: nothing,
  sent: nothing,
  relayed: nothing,
  swept: nothing,
  sweepFailed: nothing,
  watch: nothing,
}

/** Returns the dependencies with some calls to Temporal replaced. */
export const withWorkflows = (deps: Deps, workflows: Partial<Deps['workflows']>): Deps => ({
  ...deps,
  workflows: { ...deps.workflows, ...workflows },
})

/** Posts a message without beginning its turn, or starting its workflow. */
export function postUnanswered(deps: Deps, sessionId: string, text: string) {
  const attempts = { ...deps.attempts, reserve: () => undefined, beginEarly: () => undefined }
  const idle = { ...withWorkflows(deps, { startTurn: async () => {} }), attempts }
  return createMessage(idle, ANYBODY, toUuid(sessionId), { message: { content: [{ type: 'text', text }] } })
}

/** Notes that a process lives. */
export async function renewLease({ db, attempts }: Pick<Deps, 'db' | 'attempts'>): Promise<void> {
  await db.$executeRawUnsafe(RENEW_LEASE, attempts.process, processPlace ?? null, processName)
}

/** Appends events with the turn's id in their data, as most types require. Throws unless they were appended. */
export async function append(deps: Deps, writer: Writer, events: NewEvent[]): Promise<WireEvent[]> {
  const turn_id = toId('turn', writer.turnId)
  const complete = events.map((event) => ({ ...event, data: { turn_id, ...event.data } }))
  const appended = await appendEvents(deps, writer, complete)
  if (appended.outcome !== 'appended') throw new Error(appended.outcome)
  return appended.events
}

/**
 * Creates the events of an answer as model call attempts write them. Each `start` begins a new attempt with empty text.
 */
export function createAnswer(): { start(): NewEvent; delta(text: string): NewEvent } {
  let execId = newUuid()
  let accumulated = ''
  const step = 'reason:1'
  return {
    start: () => {
      execId = newUuid()
      accumulated = ''
      return { type: 'output.message.started', step, execId, data: { model: 'by-hand' } }
    },
    delta: (text) => {
      accumulated += text
      return { type: 'output.message.delta', step, execId, data: { delta: text }, parts: { accumulated } }
    },
  }
}

/** Events of a tool call and its result. `name` must be unique within the turn. */
export const toolEvents = (name: string, result: string): NewEvent[] => [
  {
    type: 'tool.started',
    step: `tool:1:${name}`,
    data: { tool_call: { id: name, name: 'echo', arguments: { text: name } } },
  },
  {
    type: 'tool.completed',
    step: `tool:1:${name}`,
    data: {
      tool_call_id: name,
      tool_name: 'echo',
      status: 'success',
      success: true,
      result: [{ type: 'text', text: JSON.stringify(result) }],
    },
  },
]
