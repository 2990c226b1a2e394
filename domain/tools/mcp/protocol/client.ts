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
  /** Secrets of the organization that are in key and headers. */
  secrets?: string[]
  /** Protocol of the last connection; see `Discovered.protocol`. */
  protocol: unknown
}

/** Tool from a server's list, within the limits. */
export type ListedTool = {
  name: string
  title: string | undefined
  description: string
  inputSchema: Record<string, unknown>
  /** The server's claims: a call changes nothing, or may be repeated. */
  isReadOnly: boolean
  isIdempotent: boolean
}

export type Discovered = {
  tools: ListedTool[]
  /** Unusable tools by name, with reasons. At most 100. */
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
  /**
   * The tool's schema as listed. A stateless server may want arguments in headers; without the schema, it is asked for
   * them.
   */
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

/** Server during a visit. Its results have no credentials. */
export type VisitedServer = {
  /** Reports whether the server has announced this part of the protocol. */
  offers(part: 'resources' | 'prompts'): boolean
  /** Sends a request. Throws the library's errors, and `LimitError` for anything but a result. */
  ask(method: string, params: Record<string, unknown>): Promise<Record<string, unknown>>
  redact(text: string): string
}

/** Requests of one visit, and words that follow "The MCP server …" when a limit of time or size is exceeded. */
export type Visit<T> = { late: string; large: string; run(server: VisitedServer): Promise<T> }

/** Error of an unusable server, in a sentence for people and models without secrets. */
export class McpFailure extends Error {
  override name = 'McpFailure'
}

/** Client of MCP servers. All operations have limits of time and size. */
export type McpClient = {
  /** Reads the tools of a server. Takes at most 30 s. Throws `McpFailure`, or the signal's reason. */
  discover(endpoint: McpEndpoint, signal: AbortSignal): Promise<Discovered>
  /** Sends other requests. Takes at most 30 s. Throws `ToolError` as `call` does, or the signal's reason. */
  visit<T>(endpoint: McpEndpoint, purpose: Visit<T>, signal: AbortSignal): Promise<T>
  /**
   * Calls a tool, and notifies the server when the signal aborts. Throws `ToolError` with a message for the model,
   * `InputRequired` when the server asks the user, or the signal's reason.
   */
  call(endpoint: McpEndpoint, call: McpCall): Promise<ToolOutput>
  /** Ends all calls and closes all connections. */
  close(): Promise<void>
}
