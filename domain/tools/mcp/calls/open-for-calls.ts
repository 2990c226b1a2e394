import { type Connecting, type Connection, connect, listen } from '../protocol/connection.ts'
import { type Exchange, exchanges } from '../protocol/exchange.ts'
import { LimitError, toToolError } from '../protocol/failure.ts'
import { MAX_UNASKED_BYTES } from '../protocol/limits.ts'

/** Opens a connection for calls, and negotiates the protocol if it is unknown or has changed. Throws `ToolError`. */
export async function openForCalls(connecting: Connecting): Promise<Connection> {
  const { endpoint, signal, times } = connecting
  const ended = new AbortController()
  const seconds = times.connect / 1000
  const tooLate = () => ended.abort(new LimitError(`could not be connected to within ${seconds} s.`))
  const late = setTimeout(tooLate, times.connect)
  const exchange: Exchange = { signal: AbortSignal.any([signal, ended.signal]), count: countUnasked() }
  try {
    const connection = await exchanges.run(exchange, () => open({ ...connecting, signal: exchange.signal }, exchange))
    exchanges.run(exchange, () => listen(connection, times))
    return connection
  } catch (error) {
    throw toToolError(endpoint, exchange.signal.aborted ? exchange.signal.reason : error, exchange)
  } finally {
    clearTimeout(late)
  }
}

/** Counts the bytes of the session's stream that belong to no call, also after it is reopened. */
function countUnasked(): (bytes: number) => void {
  let left = MAX_UNASKED_BYTES
  return (bytes) => {
    left -= bytes
    if (left < 0) throw new LimitError(`sent more than ${MAX_UNASKED_BYTES / 1024 / 1024} MiB that answer no call.`)
  }
}

async function open(connecting: Connecting, exchange: Exchange): Promise<Connection> {
  const { endpoint, signal } = connecting
  try {
    return await connect(connecting)
  } catch (error) {
    // Errors of the network and statuses do not depend on the assumed protocol.
    if (endpoint.protocol === undefined || signal.aborted || exchange.failure !== undefined) throw error
    return connect({ ...connecting, endpoint: { ...endpoint, protocol: undefined } })
  }
}
