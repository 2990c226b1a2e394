import type { GuardOptions } from '../../../lib/outgoing/guard.ts'
import type { SessionDatabases } from '../../session-data/databases/session-databases.ts'
import type { MountedFile } from '../../session-data/files/file-change.ts'
import type { FileBeginning, SessionFiles } from '../../session-data/files/session-files.ts'
import type { SessionStorage } from '../../session-data/storage/session-storage.ts'
import type { McpClient } from '../mcp/protocol/client.ts'
import type { SessionSkills } from '../skills/session-skills.ts'
import type { Answers } from './questions.ts'
import type { SessionSchedules } from './session-schedules.ts'
import type { Progress, ToolOutput } from './tool-output.ts'
import type { BashProcesses } from './virtual-bash/processes.ts'
import type { WebPageThreads } from './web-page/threads.ts'

/** Context of a tool's run, besides its arguments. All ids are plain uuids except `callId`, which the model chooses. */
export type ToolContext = {
  /** Limits of what `fetchSafely` may reach. */
  outgoing: GuardOptions
  /** Thread pools for work that untrusted input can make slow. */
  threads: { pages: WebPageThreads }
  bash: BashProcesses
  files: SessionFiles
  storage: SessionStorage
  databases: SessionDatabases
  skills: SessionSkills
  schedules: SessionSchedules
  mcp: McpClient
  organizationId: string
  sessionId: string
  turnId: string
  /** Id of the call, unique in the conversation that the model is shown. */
  callId: string
  /** Key of the call among all calls of all sessions, the same for all its runs. Has only characters of a header. */
  idempotencyKey: string
  /** True when an earlier run of this call was interrupted and may have had its effect. */
  mayHaveRun: boolean
  /** Configuration of the capability that the tool belongs to, by the agent or the session. */
  config: unknown
  /** Answers of the client to the questions of earlier runs of this call; see `InputRequired`. */
  answers: Answers[]
  /** Tells clients how far the call is, at any pace: the newest is shown about every 100 ms. */
  report: (progress: Progress) => void
  /** Aborts when the tool times out, the turn is cancelled or the process stops. */
  signal: AbortSignal
}

export type Tool = {
  name: string
  displayName: string
  description: string
  /** JSON Schema object; `run` gets only arguments that it allows. */
  parameters: Record<string, unknown>
  /**
   * Owner of the schema `parameters`. A stranger's schema is never compiled in process, and not kept.
   */
  schemaOwner?: 'service' | 'external'
  /** Name by which an MCP server knows its tool. Absent for the service's own tools. */
  nameAtServer?: string
  /** Names that the tool had under former names of its MCP server. */
  formerNames?: string[]
  /** Changes with the tool's description, so that an approval is for this version only. */
  version?: string
  /** True when each call waits for approval, whatever the agent says. */
  needsApproval?: boolean
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
  /**
   * Availability; only an `available` capability contributes tools, prompt and features, and a `disabled` one cannot be
   * named.
   */
  status: 'available' | 'coming_soon' | 'disabled'
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
  /** Present for an MCP server, of whose tools a configuration may choose some: false while its list is not known. */
  areServerToolsKnown?: boolean
  /** Beginning of the names of an MCP server's tools. */
  toolPrefix?: string
  /** Beginnings that those names had under former names of the server. */
  formerPrefixes?: string[]
  /**
   * Present when the capability may be out of date: brings its record up to date, for a short time, before a model is
   * asked. Resolves with true when the record has changed. Rejects only with the signal's reason.
   */
  freshen?: (signal: AbortSignal) => Promise<boolean>
}
