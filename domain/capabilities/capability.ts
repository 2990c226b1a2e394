import type { ContentPart } from '../../contract/messages.ts'
import type { WebPageThreads } from './web-page/threads.ts'

/** What a run of a tool gets besides its arguments; all ids are plain uuids but for `callId`, which is the model's. */
export type ToolContext = {
  /** What `fetchSafely` may reach. */
  outgoing: { allowPrivateNetwork: boolean }
  /** Where work is done that strangers can make long. */
  threads: { pages: WebPageThreads }
  organizationId: string
  sessionId: string
  turnId: string
  /** The call's idempotency key: the same for every run of one call. */
  callId: string
  /** An earlier run of this call was interrupted and may have had its effect. */
  mayHaveRun: boolean
  /** What the agent configured for the capability that the tool belongs to. */
  config: unknown
  /** Aborts when the tool's time is over, when the turn is cancelled and when the process stops. */
  signal: AbortSignal
}

/** `value` is anything that JSON holds; the model gets it as JSON text, followed by the images. */
export type ToolOutput = { value: unknown; images?: Extract<ContentPart, { type: 'image' }>[] }

export type Tool = {
  name: string
  displayName: string
  description: string
  /** A JSON Schema object; `run` only gets arguments that it allows. */
  parameters: Record<string, unknown>
  timeoutMs: number
  /** Whether a call that may have had its effect already may be run once more. */
  mayRunAgain: boolean
  /** Throws `ToolError` for what the model should know; anything else it throws is logged and told in general words. */
  run(args: Record<string, unknown>, run: ToolContext): Promise<ToolOutput>
}

/** A failure that goes back to the model: a sentence that helps it to do better. */
export class ToolError extends Error {
  override name = 'ToolError'
}

export type Feature = 'file_system' | 'secrets' | 'key_value' | 'schedules' | 'sql_database'

export type Capability = {
  id: string
  name: string
  description: string
  /** Only an available one contributes tools, prompt and features. */
  status: 'available' | 'coming_soon'
  category: string
  /** A name for whoever draws it. */
  icon?: string
  /** Capabilities that come with this one, before it. */
  dependencies: string[]
  features: Feature[]
  /** What it adds to the system prompt. */
  systemPrompt?: string
  tools: Tool[]
}
