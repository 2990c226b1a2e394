import type { GuardOptions } from '../../../lib/outgoing/guard.ts'
import { createGuardedFetch } from '../../../lib/outgoing/guarded-fetch.ts'
import { openForCalls } from './calls/open-for-calls.ts'
import { runCall } from './calls/run-call.ts'
import { discover } from './listing/discover.ts'
import { type McpClient, McpFailure } from './protocol/client.ts'
import {
  MAX_ANSWER_BYTES,
  MAX_CONNECTIONS,
  MAX_REQUEST_BYTES,
  MAX_SOCKETS_PER_ORIGIN,
  type McpTimes,
  TIMES,
} from './protocol/limits.ts'
import { createPool } from './protocol/pool.ts'
import { createServerFetch } from './protocol/server-fetch.ts'
import { visit } from './reading/visit.ts'

export type McpClientOptions = GuardOptions & {
  /** Replaces time limits in tests. */
  times?: Partial<McpTimes>
  maxConnections?: number
}

/** Creates a process's client of all MCP servers. See `McpClient`. */
export function createMcpClient(options: McpClientOptions): McpClient {
  const times = { ...TIMES, ...options.times }
  const { times: _, maxConnections = MAX_CONNECTIONS, ...guard } = options
  const guarded = createGuardedFetch({
    ...guard,
    // Calls and connections have their own limits.
    headersTimeoutMs: times.callWithProgress,
    idleTimeoutMs: times.callWithProgress,
    maxBytes: MAX_ANSWER_BYTES,
    maxRequestBytes: MAX_REQUEST_BYTES,
    maxSocketsPerOrigin: MAX_SOCKETS_PER_ORIGIN,
  })
  const fetch = createServerFetch(guarded.fetch)
  const pool = createPool((endpoint, signal) => openForCalls({ endpoint, signal, fetch, times }), {
    times,
    maxConnections,
  })
  const closed = new AbortController()
  const whileOpen = (signal: AbortSignal) => AbortSignal.any([signal, closed.signal])
  return {
    discover: (endpoint, signal) => discover({ fetch, times }, endpoint, whileOpen(signal)),
    visit: (endpoint, purpose, signal) => visit({ fetch, times }, endpoint, purpose, whileOpen(signal)),
    call: (endpoint, call) => runCall(pool, endpoint, { ...call, signal: whileOpen(call.signal) }, times),
    close: async () => {
      closed.abort(new McpFailure('The service is stopping.'))
      await pool.close()
      await guarded.close()
    },
  }
}
