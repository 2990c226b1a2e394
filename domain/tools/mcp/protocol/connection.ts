import { Client, type jsonSchemaValidator, type PriorDiscovery, type Tool } from '@modelcontextprotocol/client'
import { atMostEvery } from '../../../../lib/at-most-every.ts'
import type { McpEndpoint } from './client.ts'
import { createRedaction, type RedactCredentials } from './credentials.ts'
import { type Exchange, exchanges } from './exchange.ts'
import { headersOf } from './headers.ts'
import { boundedJson } from './json-size.ts'
import { MAX_PROTOCOL_BYTES, type McpTimes } from './limits.ts'
import { McpTransport } from './transport.ts'

/** Connection to a server: a session of protocols before 2026-07-28, or the state for stateless requests. */
export type Connection = {
  client: Client
  isStateless: boolean
  /** Must be applied to everything from the server. */
  redact: RedactCredentials
  /** Whether the server assigned a session, which it may forget. */
  hasSession: () => boolean
  /** Whether the protocol was taken from an earlier connection, and may have changed since. */
  isAssumed: boolean
  /** Called when the server says that its tools have changed. */
  onToolsChanged: () => void
  /** Tools whose server has asked for some of their arguments in headers. */
  mirrored: Map<string, Tool>
  /** Exchanges of calls under way. A question outside a call's stream belongs to the only call under way. */
  calls: Set<Exchange>
  close(): Promise<void>
}

export type Connecting = {
  endpoint: McpEndpoint
  fetch: typeof fetch
  times: McpTimes
  signal: AbortSignal
}

const CLIENT = { name: 'agent-session-service', version: '1.0.0' }

/**
 * Compiles nothing: external schemas are compiled only in threads. The client uses no method that needs a validator.
 */
const NO_VALIDATOR: jsonSchemaValidator = {
  getValidator: () => {
    throw new Error('Schemas of MCP servers are not compiled here.')
  },
}

/**
 * Opens a connection, in the asynchronous context of an exchange. Throws the library's errors, or the signal's reason.
 * The caller's signal must enforce `times.connect`.
 */
export async function connect(connecting: Connecting): Promise<Connection> {
  const { endpoint, fetch, times, signal } = connecting
  const client = new Client(CLIENT, {
    capabilities: { elicitation: { form: { applyDefaults: true }, url: {} } },
    versionNegotiation: { mode: 'auto' },
    inputRequired: { autoFulfill: false },
    jsonSchemaValidator: NO_VALIDATOR,
  })
  const transport = new McpTransport(new URL(endpoint.url), { headers: headersOf(endpoint), fetch, times })
  const prior = toPrior(endpoint.protocol)
  const connection: Connection = {
    client,
    isStateless: false,
    redact: createRedaction(endpoint),
    hasSession: () => transport.sessionId !== undefined,
    isAssumed: prior !== undefined,
    onToolsChanged: () => {},
    mirrored: new Map(),
    calls: new Set(),
    close: () => end(client, transport, times),
  }
  handle(connection, times)
  // The library's probe ignores signals; closing its transport ends it.
  const abort = () => void transport.close()
  signal.addEventListener('abort', abort, { once: true })
  try {
    signal.throwIfAborted()
    await client.connect(transport, { prior, timeout: times.connect, signal })
    signal.throwIfAborted()
  } catch (error) {
    await transport.close()
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
  connection.isStateless = client.getProtocolEra() === 'modern'
  return connection
}

/** Returns a server's protocol as JSON for later connections. Undefined if it is unknown or too large. */
export function protocolOf({ client, isStateless, redact }: Connection): PriorDiscovery | undefined {
  if (!isStateless) return { kind: 'legacy' }
  const discover = client.getDiscoverResult()
  if (discover === undefined) return undefined
  // Instructions are long, and stored with the tools.
  const { instructions: _, ...rest } = discover
  const prior: PriorDiscovery = { kind: 'modern', discover: redact(rest) }
  return isSmall(prior) ? prior : undefined
}

const isSmall = (value: unknown) => boundedJson(value, { maxBytes: MAX_PROTOCOL_BYTES, maxDepth: 32 }) !== undefined

/** Casts a stored protocol. The library checks its form, and connecting fails if it is wrong. */
const toPrior = (protocol: unknown): PriorDiscovery | undefined =>
  typeof protocol === 'object' && protocol !== null && isSmall(protocol) ? (protocol as PriorDiscovery) : undefined

function handle(connection: Connection, times: McpTimes): void {
  const { client, calls } = connection
  client.setRequestHandler('elicitation/create', ({ params }) => {
    const own = exchanges.getStore()?.elicit
    const [only, ...others] = calls
    const elicit = own ?? (others.length === 0 ? only?.elicit : undefined)
    return elicit?.(params) ?? { action: 'cancel' }
  })
  const report = atMostEvery(times.changes, () => connection.onToolsChanged())
  client.setNotificationHandler('notifications/tools/list_changed', report.call)
  client.onclose = report.stop
}

/**
 * Asks a stateless server to report changes of its tools, if it offers that. Not awaited, and not repeated when its
 * stream ends: a list is read again after its lifetime anyway. Must be called in the exchange of connecting.
 */
export function listen({ client, isStateless }: Connection, times: McpTimes): void {
  if (!isStateless || client.getServerCapabilities()?.tools?.listChanged !== true) return
  client.listen({ toolsListChanged: true }, { timeout: times.connect }).catch(() => {})
}

/** Ends a session, so that the server need not keep it, and closes the connection. */
async function end(client: Client, transport: McpTransport, times: McpTimes): Promise<void> {
  if (transport.sessionId !== undefined) {
    const late = setTimeout(() => void client.close(), times.goodbye)
    await transport.terminateSession().catch(() => {})
    clearTimeout(late)
  }
  await client.close()
}
