import type { SessionDatabases } from '../../../domain/session-data/databases/session-databases.ts'
import type { SessionFiles } from '../../../domain/session-data/files/session-files.ts'
import type { SessionStorage } from '../../../domain/session-data/storage/session-storage.ts'
import { checkArguments } from '../../../domain/tools/capabilities/arguments/check.ts'
import { createSchemaThreads } from '../../../domain/tools/capabilities/arguments/threads.ts'
import { builtinCapabilities } from '../../../domain/tools/capabilities/builtin/registry.ts'
import type { ToolContext } from '../../../domain/tools/capabilities/capability.ts'
import type { SessionSchedules } from '../../../domain/tools/capabilities/session-schedules.ts'
import { createBashProcesses } from '../../../domain/tools/capabilities/virtual-bash/processes.ts'
import { createWebPageThreads } from '../../../domain/tools/capabilities/web-page/threads.ts'
import type { McpClient } from '../../../domain/tools/mcp/protocol/client.ts'
import type { SessionSkills } from '../../../domain/tools/skills/session-skills.ts'

const threads = createSchemaThreads()
const pages = createWebPageThreads()
const bash = createBashProcesses({ maxProcesses: 2, ownerOf: async (organizationId) => organizationId })

type Options = Partial<
  Pick<ToolContext, 'idempotencyKey' | 'signal' | 'files' | 'storage' | 'skills' | 'schedules' | 'mayHaveRun'>
> & {
  allowPrivateNetwork?: boolean
}

/** Runs a built-in tool as a turn does and returns its value. Throws if the schema refuses the arguments. */
export async function runTool(name: string, args: Record<string, unknown>, options: Options = {}): Promise<unknown> {
  const tool = builtinCapabilities.flatMap(({ tools }) => tools).find((candidate) => candidate.name === name)
  if (tool === undefined) throw new Error(`there is no tool ${name}`)
  const [problem] = await checkArguments(threads, [{ schema: tool.parameters, args, isTrusted: true }])
  if (problem !== undefined) throw new Error(problem)
  const { allowPrivateNetwork = false, idempotencyKey = 'turn_1:1:0', signal = new AbortController().signal } = options
  // Most tools have nothing to do with files or storage.
  const { files = {} as SessionFiles, storage = {} as SessionStorage, skills = {} as SessionSkills } = options
  const { schedules = {} as SessionSchedules, mayHaveRun = false } = options
  const ids = { organizationId: 'o', userId: null, sessionId: 's', turnId: 't', callId: 'call_1' }
  const { value } = await tool.run(args, {
    outgoing: { allowPrivateNetwork },
    threads: { pages, schemas: threads },
    bash,
    files,
    storage,
    // What the tools of databases do is tested with a session.
    databases: {} as SessionDatabases,
    skills,
    schedules,
    mcp: {} as McpClient,
    resolveSecrets: async () => ({ fill: (text) => text, values: {} }),
    report: () => {},
    ...ids,
    idempotencyKey,
    mayHaveRun,
    config: undefined,
    answers: [],
    signal,
  })
  return value
}
