import { createMcpClient, type McpClientOptions } from '../../../domain/tools/mcp/create-client.ts'
import type { McpCall, McpClient, McpEndpoint } from '../../../domain/tools/mcp/protocol/client.ts'
import { type HostileServer, startHostileServer } from '../../support/hostile-mcp-server.ts'

const clients: McpClient[] = []
const servers: HostileServer[] = []

/** Closes all clients and servers after each test. Has to be called by each file, as modules are loaded once for many. */
export const closeAll = () =>
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()))
    await Promise.all(servers.splice(0).map((server) => server.stop()))
  })

/** Creates a client that is closed after the test. */
export function newClient(options: Partial<McpClientOptions> = {}): McpClient {
  const client = createMcpClient({ allowPrivateNetwork: true, ...options })
  clients.push(client)
  return client
}

/** Starts a server that is stopped after the test. */
export async function newServer(answers: HostileServer['answers'] = {}): Promise<HostileServer> {
  const server = await startHostileServer()
  Object.assign(server.answers, answers)
  servers.push(server)
  return server
}

export const endpointOf = ({ url }: { url: string }, more: Partial<McpEndpoint> = {}): McpEndpoint => ({
  organizationId: 'organization',
  id: 'server',
  revision: 1,
  name: 'Acme',
  url,
  apiKey: undefined,
  headers: {},
  protocol: undefined,
  ...more,
})

export const callOf = (more: Partial<McpCall> = {}): McpCall => ({
  tool: 'echo',
  arguments: {},
  sessionId: 'session',
  idempotencyKey: 'key',
  answers: [],
  onProgress: () => {},
  onToolsChanged: () => {},
  signal: new AbortController().signal,
  ...more,
})

export const never = (): AbortSignal => new AbortController().signal

/** Returns what a promise is rejected with. */
export async function failureOf(promise: Promise<unknown>): Promise<Error> {
  const outcome = await promise.then(
    (value) => new Error(`There was no failure, but ${JSON.stringify(value)}.`),
    (error: unknown) => error,
  )
  if (outcome instanceof Error) return outcome
  throw new Error('A value that is not an error was thrown.', { cause: outcome })
}
