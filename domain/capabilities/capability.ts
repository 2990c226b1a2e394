import type { ContentPart } from '../../contract/messages.ts'
import type { SessionDatabases } from '../databases/session-databases.ts'
import type { MountedFile } from '../files/file-change.ts'
import type { FileBeginning, SessionFiles } from '../files/session-files.ts'
import type { SessionStorage } from '../storage/session-storage.ts'
import type { BashProcesses } from './virtual-bash/processes.ts'
import type { WebPageThreads } from './web-page/threads.ts'

/** Context of a tool's run, besides its arguments. All ids are plain uuids except `callId`, which the model chooses. */
export type ToolContext = {
  /** Limits of what `fetchSafely` may reach. */
  outgoing: { allowPrivateNetwork: boolean }
  /** Thread pools for work that untrusted input can make slow. */
  threads: { pages: WebPageThreads }
  bash: BashProcesses
  files: SessionFiles
  storage: SessionStorage
  databases: SessionDatabases
  organizationId: string
  sessionId: string
  turnId: string
  /** Idempotency key of the call: the same for all its runs. */
  callId: string
  /** True when an earlier run of this call was interrupted and may have had its effect. */
  mayHaveRun: boolean
  /** Configuration of the capability that the tool belongs to, by the agent or the session. */
  config: unknown
  /** Aborts when the tool times out, the turn is cancelled or the process stops. */
  signal: AbortSignal
}

/** Result of a tool. `value` is any JSON value; the model gets it as JSON text, followed by the images. */
export type ToolOutput = { value: unknown; images?: Extract<ContentPart, { type: 'image' }>[] }

export type Tool = {
  name: string
  displayName: string
  description: string
  /** JSON Schema object; `run` gets only arguments that it allows. */
  parameters: Record<string, unknown>
  /** Names of the top-level properties of arguments and results whose values are secret: events hold [secret] instead of them. */
  secrets?: { arguments?: string[]; results?: string[] }
  timeoutMs: number
  /** True when a call that may already have had its effect can be run again. */
  mayRunAgain: boolean
  /**
   * Runs a call. Throws `ToolError` for what the model should know; any other error is logged and reported in general
   * terms.
   */
  run(args: Record<string, unknown>, run: ToolContext): Promise<ToolOutput>
}

/** Failure that is reported to the model, with a sentence that helps it to do better. */
export class ToolError extends Error {
  override name = 'ToolError'
}

/** Session as an addition to its prompt reads it. */
export type PromptSession = {
  /** Reads at most `maxBytes` of a file. Undefined when there is none. */
  readFile(path: string, maxBytes: number): Promise<FileBeginning | undefined>
}

export type Feature = 'file_system' | 'secrets' | 'key_value' | 'schedules' | 'sql_database'

export type Capability = {
  id: string
  name: string
  description: string
  /** Availability; only an `available` capability contributes tools, prompt and features. */
  status: 'available' | 'coming_soon'
  category: string
  /** Name of an icon, for user interfaces. */
  icon?: string
  /** Ids of the capabilities that are added with this one, before it. */
  dependencies: string[]
  features: Feature[]
  /**
   * Text that the capability adds to the system prompt. A function makes it anew for each model call; where there is no
   * session, it adds nothing.
   */
  systemPrompt?: string | ((session: PromptSession) => Promise<string>)
  /** Files that a session has from its creation on. */
  files?: MountedFile[]
  tools: Tool[]
}
