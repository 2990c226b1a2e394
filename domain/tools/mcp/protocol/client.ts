import type { Answers } from '../../capabilities/questions.ts'
import type { Progress, ToolOutput } from '../../capabilities/tool-output.ts'

/** Server to connect to. `revision` changes with its address or credentials. */
export type McpEndpoint = {
  organizationId: string
  id: string
  revision: number
  /** Name for people and models. */
  name: string
  url: string
  apiKey: string | undefined
  headers: Record<string, string>
  /** Protocol of the last connection; see `Discovered.protocol`. */
  protocol: unknown
}

/** Tool as a server lists it, within the limits of a list. */
export type ListedTool = {
  name: string
  title: string | undefined
  description: string
  inputSchema: Record<string, unknown>
  /** Claims of the server: that a call changes nothing, or may be repeated. */
  isReadOnly: boolean
  isIdempotent: boolean
}

export type Discovered = {
  tools: ListedTool[]
  /** Tools that cannot be used, by name, and why. At most 100 of them. */
  leftOut: { name: string; reason: string }[]
  /** Instructions of the server to models about all its tools, at most 8 KiB. */
  instructions?: string | undefined
  /** Lifetime of the list, if the server gives one. */
  ttlMs: number | undefined
  /** JSON of the server's protocol, so that the next connection need not negotiate it. */
  protocol: unknown
}

export type McpCall = {
  tool: string
  arguments: Record<string, unknown>
  /** The tool's schema as listed. A stateless server may want arguments in headers; without it, it is asked which. */
  inputSchema?: Record<string, unknown> | undefined
  /** Connections with state are not shared among sessions. */
  sessionId: string
  idempotencyKey: string
  /** Answers to the questions of earlier runs. */
  answers: Answers[]
  /** Called whenever the server reports progress. */
  onProgress: (progress: Progress) => void
  /** Called when the server says that its tools have changed, at most once a second for each connection. */
  onToolsChanged: () => void
  signal: AbortSignal
}

/** Error of a server that cannot be used, in a sentence for people and models that quotes no secret. */
export class McpFailure extends Error {
  override name = 'McpFailure'
}

/** Client of MCP servers. Everything that it does has limits on time and size. */
export type McpClient = {
  /** Reads the tools of a server. Takes at most 30 s. Throws `McpFailure`, or the signal's reason. */
  discover(endpoint: McpEndpoint, signal: AbortSignal): Promise<Discovered>
  /**
   * Calls a tool, and tells the server when the signal aborts. Throws `ToolError` for what the model should know,
   * `InputRequired` when the server asks the user, or the signal's reason.
   */
  call(endpoint: McpEndpoint, call: McpCall): Promise<ToolOutput>
  /** Ends all calls and closes all connections. */
  close(): Promise<void>
}
