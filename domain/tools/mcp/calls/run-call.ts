import { rejectOnAbort } from '../../../../lib/reject-on-abort.ts'
import { ToolError } from '../../capabilities/capability.ts'
import { InputRequired } from '../../capabilities/questions.ts'
import type { ToolOutput } from '../../capabilities/tool-output.ts'
import type { McpCall, McpEndpoint } from '../protocol/client.ts'
import type { Connection } from '../protocol/connection.ts'
import type { Exchange } from '../protocol/exchange.ts'
import { LimitError, toToolError } from '../protocol/failure.ts'
import type { McpTimes } from '../protocol/limits.ts'
import { type Lease, type Pool, PoolFull } from '../protocol/pool.ts'
import { callOn, wasForgotten } from './call.ts'

/**
 * Runs a call on the connection of its session, and once more on a new connection if the server did not process it
 * because it forgot the session or changed its protocol. See `McpClient.call`.
 */
export async function runCall(pool: Pool, endpoint: McpEndpoint, call: McpCall, times: McpTimes): Promise<ToolOutput> {
  const first = await callOnce(pool, endpoint, call, times)
  if ('output' in first) return first.output
  if (!first.mayBeOutdated) throw first.forgotten
  const second = await callOnce(pool, { ...endpoint, protocol: undefined }, call, times)
  if ('output' in second) return second.output
  throw second.forgotten
}

type Outcome = { output: ToolOutput } | { forgotten: ToolError; mayBeOutdated: boolean }

async function callOnce(pool: Pool, endpoint: McpEndpoint, call: McpCall, times: McpTimes): Promise<Outcome> {
  call.signal.throwIfAborted()
  const lease = take(pool, endpoint, call)
  try {
    const connection = await rejectOnAbort(call.signal, lease.connection)
    const outcome = await attempt(connection, endpoint, call, times)
    if ('output' in outcome) return outcome
    lease.discard()
    return { ...outcome, mayBeOutdated: connection.isAssumed || !lease.isNew }
  } finally {
    lease.giveBack()
  }
}

function take(pool: Pool, endpoint: McpEndpoint, { sessionId }: McpCall): Lease {
  try {
    return pool.lease(endpoint, sessionId)
  } catch (error) {
    if (error instanceof PoolFull) throw new ToolError(`${error.message} Try again later.`)
    throw error
  }
}

async function attempt(
  connection: Connection,
  endpoint: McpEndpoint,
  call: McpCall,
  times: McpTimes,
): Promise<{ output: ToolOutput } | { forgotten: ToolError }> {
  call.signal.throwIfAborted()
  const ended = new AbortController()
  const seconds = times.callWithProgress / 1000
  const tooLate = () => ended.abort(new LimitError(`did not finish the call within ${seconds} s.`))
  const late = setTimeout(tooLate, times.callWithProgress)
  // Not the caller's signal, because the server receives the reason.
  const cancel = () => ended.abort(new Error('The call was cancelled.'))
  call.signal.addEventListener('abort', cancel, { once: true })
  const exchange: Exchange = { signal: ended.signal }
  try {
    return { output: await callOn(connection, endpoint, call, exchange, times) }
  } catch (error) {
    call.signal.throwIfAborted()
    if (error instanceof ToolError || error instanceof InputRequired) throw error
    const cause = ended.signal.aborted ? ended.signal.reason : error
    const failure = toToolError(endpoint, cause, exchange)
    if (wasForgotten(error, connection)) return { forgotten: failure }
    throw failure
  } finally {
    clearTimeout(late)
    call.signal.removeEventListener('abort', cancel)
    // Ends its remaining streams.
    ended.abort()
  }
}
