/** Part of a message that a page shows. Which fields it has depends on its type. */
export type Part = {
  type: string
  id?: string
  text?: string
  state?: string
  toolCallId?: string
  toolName?: string
  input?: unknown
  output?: unknown
  errorText?: string
  providerExecuted?: boolean
  approval?: { id: string; approved?: boolean }
  data?: unknown
}
export type UiMessage = { id: string; role: string; parts: Part[] }
export type FilePart = { type: 'file'; mediaType: string; url: string; filename?: string }
type ToolCall = { toolCallId: string; toolName: string; input: unknown; dynamic?: boolean }
type ToolOutput = { tool: string; toolCallId: string; output?: unknown; state?: 'output-error'; errorText?: string }

/** Chat as `useChat` returns it. */
export interface Chat {
  readonly id: string
  readonly status: 'submitted' | 'streaming' | 'ready' | 'error'
  readonly error?: Error
  messages: UiMessage[]
  sendMessage(message?: { text?: string; files?: FilePart[]; messageId?: string }): Promise<void>
  regenerate(): Promise<void>
  resumeStream(): Promise<void>
  stop(): Promise<void>
  addToolOutput(output: ToolOutput): Promise<void>
  /** Missing in version 5. */
  addToolApprovalResponse?(answer: { id: string; approved: boolean; reason?: string }): Promise<void>
}

type Predicate = (options: { messages: UiMessage[] }) => boolean
export type ChatInit = {
  id: string
  transport: unknown
  state: unknown
  sendAutomaticallyWhen: Predicate
  onToolCall?: (options: { toolCall: ToolCall }) => void
}
type TransportInit = { api: string; headers: Record<string, string>; fetch: typeof fetch }

/** Exports of `ai` that a page uses. */
export interface AiPackage {
  AbstractChat: new (init: ChatInit) => Chat
  DefaultChatTransport: new (init: TransportInit) => unknown
  lastAssistantMessageIsCompleteWithToolCalls: Predicate
  /** Missing in version 5. */
  lastAssistantMessageIsCompleteWithApprovalResponses?: Predicate
}

/** Version of the AI SDK that a page is built with. */
export type Version = {
  name: string
  major: 5 | 6 | 7
  load(): Promise<AiPackage>
  /** A page whose connection was lost can resume where it is. Others must be loaded again, or show text twice. */
  resumesInPlace: boolean
}

const version = (name: string, major: 5 | 6 | 7, resumesInPlace: boolean): Version => ({
  name,
  major,
  resumesInPlace,
  // Their types differ where the tests do not look.
  load: async () => (await import(name)) as AiPackage,
})

export const versions = {
  'ai5-150': version('ai5-150', 5, false),
  ai5: version('ai5', 5, false),
  'ai6-200': version('ai6-200', 6, false),
  ai6: version('ai6', 6, true),
  ai7: version('ai7', 7, true),
}
export type VersionName = keyof typeof versions
