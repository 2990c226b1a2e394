import type { ToolDefinition } from '../../../contract/tools.ts'
import { guardRenamed } from '../../../domain/capabilities/guard.ts'
import type { ResolvedCapability } from '../../../domain/capabilities/resolve.ts'
import { serverCapability } from '../../../domain/mcp-servers/capability.ts'
import { listedTool, serverRow } from '../../support/mcp-server.ts'

const server = (slug: string, ...tools: string[]): ResolvedCapability => ({
  // Only a call needs dependencies.
  capability: serverCapability(
    {} as never,
    serverRow(
      tools.map((name) => listedTool(name)),
      { slug },
    ),
  ),
  config: undefined,
})
const entry = (name: string, policy: 'auto' | 'requires_approval' | 'client_side'): ToolDefinition => ({
  type: 'builtin',
  name,
  description: '',
  parameters: {},
  policy,
})

/** Returns the names of the tools that wait for approval. */
const waiting = (servers: ResolvedCapability[], ...definitions: ToolDefinition[]): string[] =>
  guardRenamed(servers, definitions).flatMap(({ capability: { tools } }) =>
    tools.filter(({ needsApproval }) => needsApproval).map(({ name }) => name),
  )

describe("while a guard names a tool that its server does not list, the server's others wait for approval", () => {
  const files = server('files', 'read', 'erase')
  const mail = server('mail', 'send')

  it.each<[string, ToolDefinition[], string[]]>([
    [
      'a tool that is renamed',
      [entry('mcp_files__delete', 'requires_approval')],
      ['mcp_files__read', 'mcp_files__erase'],
    ],
    ['one that the client runs', [entry('mcp_mail__post', 'client_side')], ['mcp_mail__send']],
    [
      'a server that is renamed',
      [entry('mcp_disk__delete', 'requires_approval')],
      ['mcp_files__read', 'mcp_files__erase', 'mcp_mail__send'],
    ],
    [
      'all but those that somebody has named',
      [entry('mcp_files__delete', 'requires_approval'), entry('mcp_files__read', 'auto')],
      ['mcp_files__erase'],
    ],
    ['none while the guard finds its tool', [entry('mcp_files__erase', 'requires_approval')], []],
    ['none for an entry that is no guard', [entry('mcp_files__delete', 'auto')], []],
    [
      'none where the session takes the guard back',
      [entry('mcp_files__delete', 'requires_approval'), entry('mcp_files__delete', 'auto')],
      [],
    ],
    ['none for a tool of the service', [entry('delete_files', 'requires_approval')], []],
  ])('%s', (_, definitions, names) => {
    expect(waiting([files, mail], ...definitions)).toEqual(names)
  })
})
