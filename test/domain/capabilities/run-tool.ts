import { checkArguments } from '../../../domain/capabilities/arguments.ts'
import type { ToolRun } from '../../../domain/capabilities/capability.ts'
import { builtinCapabilities } from '../../../domain/capabilities/registry.ts'
import type { Deps } from '../../../domain/deps.ts'

type Options = Partial<Pick<ToolRun, 'callId' | 'signal'>> & { allowPrivateNetwork?: boolean }

/** Runs a tool of the service's own as a turn does: arguments that its schema refuses are an error. Returns its value. */
export async function runTool(name: string, args: Record<string, unknown>, options: Options = {}): Promise<unknown> {
  const tool = builtinCapabilities.flatMap(({ tools }) => tools).find((candidate) => candidate.name === name)
  if (tool === undefined) throw new Error(`there is no tool ${name}`)
  const [problem] = await checkArguments([{ schema: tool.parameters, args, isTrusted: true }])
  if (problem !== undefined) throw new Error(problem)
  const { allowPrivateNetwork = false, callId = 'call_1', signal = new AbortController().signal } = options
  // All that the tools here use of it.
  const deps = { allowPrivateNetwork } as Deps
  const ids = { organizationId: 'o', sessionId: 's', turnId: 't', callId }
  const { value } = await tool.run(args, { deps, ...ids, mayHaveRun: false, config: undefined, signal })
  return value
}
