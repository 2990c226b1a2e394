import { type Capability, type Tool, type ToolContext, ToolError } from '../../domain/tools/capabilities/capability.ts'

type Args = Record<string, unknown>

/** Run of a tool of the vault in this process, with the arguments that it was given. */
export type VaultRun = { tool: string; callId: string; args: Args }

/** Creates a capability whose tools mark `value` as secret, in arguments and results. `runs` lists their runs. */
export function createVault(): { capability: Capability; runs: VaultRun[] } {
  const runs: VaultRun[] = []
  const tool = (name: string, run: (args: Args, run: ToolContext) => unknown, value: object = {}): Tool => ({
    name,
    displayName: name,
    description: `Does ${name}.`,
    parameters: { type: 'object', properties: { name: { type: 'string' }, value }, additionalProperties: false },
    secrets: { arguments: ['value'], results: ['value'] },
    timeoutMs: 3_600_000,
    mayRunAgain: true,
    run: async (args, context) => {
      runs.push({ tool: name, callId: context.callId, args })
      return { value: await run(args, context) }
    },
  })
  const untilAborted = (_args: Args, { signal }: ToolContext) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const quoting = ({ value }: Args) => `cannot keep ${value}, or ${JSON.stringify({ value })}`
  const tools = [
    tool('keep', ({ name, value }) => ({ name, value, literal: '[secret]' })),
    { ...tool('keep_once', (args) => args), mayRunAgain: false },
    tool('keep_counts', (args) => args, { type: 'object', additionalProperties: { type: 'integer' } }),
    tool('tell', ({ value }) => value),
    tool('fill', ({ name, value }) => ({ name, value: String(value).repeat(20_000) })),
    tool('block', untilAborted),
    tool('refuse', (args) => {
      throw new ToolError(quoting(args))
    }),
    tool('crash', (args) => {
      throw Object.assign(new Error(quoting(args)), { args, cause: new Error(quoting(args)) })
    }),
    tool('stumble', (args, { mayHaveRun }) => {
      if (mayHaveRun) return args
      throw Object.assign(new Error(quoting(args)), { code: 'ECONNREFUSED' })
    }),
  ]
  const capability: Capability = {
    id: 'vault',
    name: 'Vault',
    description: 'Tools with secrets.',
    status: 'available',
    category: 'test',
    dependencies: [],
    features: [],
    tools,
  }
  return { capability, runs }
}
