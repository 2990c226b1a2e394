/**
 * Names of spans and attributes. `gen_ai.*`: the GenAI semantic conventions of OpenTelemetry, which are in development,
 * as of github.com/open-telemetry/semantic-conventions-genai at 002c8a6ea1c8a42b14a4527db83b3cabcded610a. `error.type` and
 * `http.*`: semantic conventions v1.41.1, stable. `agent_sessions.*`: this service's own.
 */
export const OPERATION = { turn: 'invoke_agent', modelCall: 'chat', toolCall: 'execute_tool' } as const

export const ATTRIBUTE = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  conversation: 'gen_ai.conversation.id',
  agent: 'gen_ai.agent.id',
  agentName: 'gen_ai.agent.name',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  responseId: 'gen_ai.response.id',
  finishReasons: 'gen_ai.response.finish_reasons',
  firstChunkSeconds: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheCreationTokens: 'gen_ai.usage.cache_creation.input_tokens',
  tool: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  toolCall: 'gen_ai.tool.call.id',
  systemInstructions: 'gen_ai.system_instructions',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
  errorType: 'error.type',
  method: 'http.request.method',
  route: 'http.route',
  status: 'http.response.status_code',
  turn: 'agent_sessions.turn.id',
  iteration: 'agent_sessions.turn.iteration',
  queueSeconds: 'agent_sessions.turn.queue_seconds',
  request: 'agent_sessions.request.id',
} as const

/** Provider of a turn: the service itself, whose agents may use models of several. */
export const OWN_PROVIDER = 'agent-session-service'

/** Names of providers by their types. Types without one have their own name. */
const PROVIDERS: Record<string, string> = { openai_completions: 'openai', gemini: 'gcp.gemini' }

export const providerOf = (type: string): string => PROVIDERS[type] ?? type
