import type { GuardOptions } from '../../../lib/outgoing/guard.ts'
import type { TemporalTarget } from '../../../workflows/messages.ts'
import type { ResolvedSecrets } from '../../kit/organization-secrets/resolve.ts'
import type { SessionDatabases } from '../../session-data/databases/session-databases.ts'
import type { MountedFile } from '../../session-data/files/file-change.ts'
import type { FileBeginning, SessionFiles } from '../../session-data/files/session-files.ts'
import type { SessionStorage } from '../../session-data/storage/session-storage.ts'
import type { McpClient } from '../mcp/protocol/client.ts'
import type { SessionSkills } from '../skills/session-skills.ts'
import type { SchemaThreads } from './arguments/threads.ts'
import type { Answers } from './questions.ts'
import type { SessionSchedules } from './session-schedules.ts'
import type { Progress, ToolOutput } from './tool-output.ts'
import type { BashProcesses } from './virtual-bash/processes.ts'
import type { WebPageThreads } from './web-page/threads.ts'

/** Context of a tool's run, besides its arguments. All ids are plain uuids except `callId`, which the model chooses. */
export type ToolContext = {
  /** Restricts the addresses of `fetchSafely`. */
  outgoing: GuardOptions
  /** Thread pools for work that untrusted input can make slow. */
  threads: { pages: WebPageThreads; schemas: SchemaThreads }
  bash: BashProcesses
  files: SessionFiles
  storage: SessionStorage
  databases: SessionDatabases
  skills: SessionSkills
  schedules: SessionSchedules
  mcp: McpClient
  /** Reads the organization's secrets that texts name, for a request to a URL. Throws `SecretRefused`. */
  resolveSecrets(url: string, texts: readonly string[]): Promise<ResolvedSecrets>
  organizationId: string
  /** Author of the turn's message. Null if it was no user. */
  userId: string | null
  sessionId: string
  turnId: string
  /** Id of the call, unique in the model's conversation. */
  callId: string
  /** Key of the call among all calls of all sessions, the same for all its runs. Valid in a header. */
  idempotencyKey: string
  /** Whether an earlier run of this call was interrupted and may have had its effect. */
  mayHaveRun: boolean
  /** Configuration of the tool's capability by the agent or the session. */
  config: unknown
  /** Answers of the client to the questions of earlier runs of this call; see `InputRequired`. */
  answers: Answers[]
  /** Asks the agent of the tool and returns its answer. Present for a tool that `asks` one. */
  askAgent?: (message: string) => Promise<ToolOutput>
  /** Reports progress to clients, at any rate: the latest is published about every 100 ms. */
  report: (progress: Progress) => void
  /** Aborts when the tool times out, the turn is cancelled or the process stops. */
  signal: AbortSignal
}

export type Tool = {
  name: string
  displayName: string
  description: string
  /** JSON Schema object. `run` receives only valid arguments. */
  parameters: Record<string, unknown>
  /** Owner of the schema `parameters`. An external schema is never compiled in process or cached. */
  schemaOwner?: 'service' | 'external'
  /** Name by which an MCP server knows its tool. Absent for the service's own tools. */
  nameAtServer?: string
  /** Earlier names of the tool, under former names of its MCP server. */
  formerNames?: string[]
  /** Changes with the tool's description, to limit an approval to this version. */
  version?: string
  /** Whether each call waits for approval, whatever the agent says. */
  needsApproval?: boolean
  /** Whether strangers write its results. Text in them that only models would read is removed. */
  isForeign?: boolean
  /** Names of the top-level properties of arguments and results whose values are secret: events hold [secret] instead of them. */
  secrets?: { arguments?: string[]; results?: string[] }
  /** Id of the agent whose turn answers the tool's calls. */
  asks?: string
  timeoutMs: number
  /** Present if a worker of the organization runs the calls, instead of `run`. */
  temporal?: TemporalTarget
  /** Whether a call may run again that may already have had its effect. */
  mayRunAgain: boolean
  /**
   * Runs a call. Throws `ToolError` with a message for the model; other errors are logged and reported in general
   * terms.
   */
  run(args: Record<string, unknown>, run: ToolContext): Promise<ToolOutput>
}

/** Failure reported to the model, in a sentence that helps it to correct the call. */
export class ToolError extends Error {
  override name = 'ToolError'
}

/** Session, as additions to its prompt read it. */
export type PromptSession = {
  /** Reads at most `maxBytes` of a file. Undefined if it does not exist. */
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
  /** Ids of the capabilities that are added before this one. */
  dependencies: string[]
  features: Feature[]
  /**
   * Text that the capability adds to the system prompt. A function makes it for each model call; without a session it
   * adds nothing.
   */
  systemPrompt?: string | ((session: PromptSession) => Promise<string>)
  /** Files of every new session. */
  files?: MountedFile[]
  tools: Tool[]
  /** Present for an MCP server, whose tools a configuration may select: false while its list is unknown. */
  areServerToolsKnown?: boolean
  /** Prefix of the names of an MCP server's tools. */
  toolPrefix?: string
  /** Earlier prefixes, under former names of the server. */
  formerPrefixes?: string[]
  /**
   * Present if the capability may be out of date: updates its record, within a short time, before a model call.
   * Resolves with true if the record has changed. Rejects only with the signal's reason.
   */
  freshen?: (signal: AbortSignal) => Promise<boolean>
}
