import { createCallQueue } from './call-queue.ts'
import type { Connection } from './connection.ts'
import { readApiError } from './errors.ts'
import type { Operations } from './generated/operations.ts'
import type { RequestedCall, StreamedOrganizationEvent, Turn } from './generated/types.gen.ts'
import { isOver, takeLease } from './lease.ts'
import { followEvents } from './organization.ts'
import { ENDLESS_PATIENCE, repeated } from './retry.ts'
import { newKey } from './session.ts'
import type { DefinedTool } from './tool.ts'
import { resultOf, submitResult } from './tools.ts'

/** Call of a client's tool. `signal` aborts when the call is over, another program has taken it, or serving ends. */
export type ServedCall = RequestedCall & { session_id: string; turn_id: string; signal: AbortSignal }

/** Function of a tool. The model reads its result, as JSON, or the message of the error that it throws. */
export type ServedFunction = {
  // As a method, it may declare the type of its arguments.
  run(args: Record<string, unknown>, call: ServedCall): unknown
}['run']

export type ServeOptions = {
  agentId: string
  /** Tools by their names. Calls of others are left to other programs. */
  tools: Record<string, ServedFunction | DefinedTool>
  /** Number of calls that run at once. Default: 8. */
  concurrency?: number
  /** Ends serving: running calls are aborted and left to other programs. */
  signal?: AbortSignal
  /** Called with false when a failure interrupts the events, and with true when they resume. */
  onConnected?: (isConnected: boolean) => void
}

const CONCURRENCY = 8
const PAGE = 100
/** Pause before a call whose lease was lost is tried again. */
const LOST_MS = 1000
/** Name of the calls by which a tool asks its user. */
const QUESTION = 'mcp_elicitation'
const TYPES: StreamedOrganizationEvent['type'][] = ['turn.waiting', 'turn.completed', 'turn.failed', 'turn.cancelled']

type Pending = { session_id: string; turn_id: string; id: string; call: RequestedCall }

/**
 * Answers the calls of client-side tools in all sessions of an agent, until the signal aborts. Of several such programs one
 * runs each call. Throws ApiError if reconnecting cannot help.
 */
export async function serveTools(connection: Connection, api: Operations, options: ServeOptions): Promise<void> {
  const { agentId, signal, onConnected } = options
  const stop = new AbortController()
  const end = () => stop.abort(new Error('Serving has ended'))
  signal?.addEventListener('abort', end)
  if (signal?.aborted) end()
  let failure: { error: unknown } | undefined
  const fail = (error: unknown) => {
    if (!stop.signal.aborted) failure = { error }
    end()
  }
  const { offer, queue, readPending } = createCalls(connection, api, options, { stop: stop.signal, fail })
  let isBegun = false
  const onBegin = () => {
    if (!isBegun) readPending()
    isBegun = true
  }
  const all = { agent_id: agentId, types: TYPES, signal: stop.signal, onBegin, ...(onConnected && { onConnected }) }
  try {
    for await (const { type, turn_id, data } of followEvents(connection, all)) {
      if (type === 'gap') readPending()
      // The record has the turn as it is now, or null if its session is deleted.
      const turn = data.turn as Turn | null | undefined
      if (turn?.status === 'waiting') offer(turn)
      else if (turn_id) queue.drop(turn_id)
    }
  } catch (error) {
    fail(error)
  } finally {
    end()
    signal?.removeEventListener('abort', end)
    await queue.close()
  }
  if (failure !== undefined) throw failure.error
}

type Serving = { stop: AbortSignal; fail(error: unknown): void }

/** Creates the queue of the calls that there are tools for. */
function createCalls(connection: Connection, api: Operations, options: ServeOptions, { stop, fail }: Serving) {
  const { agentId, tools, concurrency = CONCURRENCY } = options
  const offer = (turn: Turn) => {
    for (const call of turn.pending_tool_calls) {
      if (call.kind !== 'client_tool' || call.name === QUESTION || !Object.hasOwn(tools, call.name)) continue
      queue.add({ session_id: turn.session_id, turn_id: turn.id, id: call.id, call })
    }
  }
  const readPending = () => void readWaiting(connection, api, agentId, stop, offer).catch(fail)
  const work = createWorker(api, tools, stop)
  const queue = createCallQueue<Pending>({ concurrency, work, onRoom: readPending, onFailure: fail })
  return { offer, queue, readPending }
}

/** Returns the work on one call: lease, run, submit. */
function createWorker(api: Operations, tools: ServeOptions['tools'], stop: AbortSignal) {
  const holder = newKey()
  return async ({ session_id, turn_id, id, call }: Pending, ended: AbortSignal): Promise<number | undefined> => {
    const found = tools[call.name]
    const run = (typeof found === 'object' ? found.run : found) as ServedFunction
    const lease = await takeLease(api, { session_id, tool_call_id: id, holder }, AbortSignal.any([ended, stop]))
    if (lease === undefined || typeof lease === 'number') return lease
    const signal = AbortSignal.any([ended, stop, lease.lost])
    const served = { ...call, session_id, turn_id, signal }
    // A tool that goes on in spite of its signal keeps its place, so that it does not run twice here.
    const result = await untilAborted(
      resultOf(call, (args) => run(args, served)),
      stop,
    )
    if (result !== undefined && !signal.aborted) {
      const submitted = submitResult(api, session_id, result, signal)
      await submitted.catch((error: unknown) => signal.aborted || unlessOver(error))
    }
    if (!signal.aborted) lease.end()
    else await lease.release()
    return lease.lost.aborted ? LOST_MS : undefined
  }
}

/** Resolves with the result of work, or with undefined once the signal aborts. */
const untilAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> =>
  new Promise((resolve, reject) => {
    const end = () => resolve(undefined)
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end))
  })

/** Reads the turns of the agent that wait. */
async function readWaiting(
  connection: Connection,
  api: Operations,
  agentId: string,
  signal: AbortSignal,
  offer: (turn: Turn) => void,
): Promise<void> {
  const query = new URLSearchParams({ status: 'waiting', agent_id: agentId, limit: `${PAGE}` })
  const patiently = <T>(request: (limited: AbortSignal) => Promise<T>) => repeated(request, ENDLESS_PATIENCE, signal)
  const agentOf = async ({ session_id, agent_id }: WaitingTurn) => {
    if (agent_id !== undefined) return agent_id
    const session = patiently((limited) => api.sessions.get({ session_id }, { signal: limited }))
    return (await session.catch(unlessOver))?.agent_id
  }
  let page: WaitingPage
  do {
    page = await patiently((limited) => readPage(connection, `/v1/turns?${query}`, limited))
    for (const turn of page.data) if ((await agentOf(turn)) === agentId) offer(turn)
    query.set('after', page.next ?? '')
  } while (page.next)
}

const unlessOver = (error: unknown): undefined => {
  if (!isOver(error)) throw error
}

type WaitingTurn = Turn & { agent_id?: string | null }
type WaitingPage = { data: WaitingTurn[]; next?: string | null }

async function readPage(connection: Connection, path: string, signal: AbortSignal): Promise<WaitingPage> {
  const response = await connection.send(connection.request(path, { signal }))
  if (!response.ok) throw await readApiError(response)
  return response.json()
}
