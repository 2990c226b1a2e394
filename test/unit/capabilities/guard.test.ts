import type { ToolDefinition } from '../../../contract/tools.ts'
import { guardRenamed } from '../../../domain/tools/capabilities/guard.ts'
import type { ResolvedCapability } from '../../../domain/tools/capabilities/resolve.ts'
import { serverCapability } from '../../../domain/tools/mcp-servers/capability.ts'
import { listedTool, serverRow } from '../../support/mcp-server.ts'

const server = (names: string | string[], ...tools: string[]): ResolvedCapability => ({
  // Only a call needs dependencies.
  capability: serverCapability(
    {} as never,
    serverRow(
      tools.map((name) => listedTool(name)),
      { slug: [names].flat()[0] ?? '', formerSlugs: [names].flat().slice(1) },
    ),
  ),
  config: undefined,
})
const entry = (name: string, policy?: 'auto' | 'requires_approval' | 'client_side'): ToolDefinition => ({
  type: 'builtin',
  name,
  description: '',
  parameters: {},
  ...(policy && { policy }),
})

/** Returns the names of the tools that wait for approval. */
const waiting = (servers: ResolvedCapability[], definitions: ToolDefinition[], inactive: string[] = []): string[] =>
  guardRenamed(servers, definitions, inactive).flatMap(({ capability: { tools } }) =>
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
    ['a tool that the client runs', [entry('mcp_mail__post', 'client_side')], ['mcp_mail__send']],
    [
      'a server that is renamed',
      [entry('mcp_disk__delete', 'requires_approval')],
      ['mcp_files__read', 'mcp_files__erase', 'mcp_mail__send'],
    ],
    [
      'all but the tools that an entry names',
      [entry('mcp_files__delete', 'requires_approval'), entry('mcp_files__read', 'auto')],
      ['mcp_files__erase'],
    ],
    ['none while the guard finds its tool', [entry('mcp_files__erase', 'requires_approval')], []],
    ['none for an entry that is not a guard', [entry('mcp_files__delete', 'auto')], []],
    [
      'a tool that an entry names without a policy',
      [entry('mcp_mail__post', 'requires_approval'), entry('mcp_mail__send')],
      ['mcp_mail__send'],
    ],
    [
      'none where the session takes the guard back',
      [entry('mcp_files__delete', 'requires_approval'), entry('mcp_files__delete', 'auto')],
      [],
    ],
    ['none for a tool of the service', [entry('delete_files', 'requires_approval')], []],
  ])('%s', (_, definitions, names) => {
    expect(waiting([files, mail], definitions)).toEqual(names)
  })

  it('none while its server is known and not in use', () => {
    expect(waiting([files, mail], [entry('mcp_disk__delete', 'requires_approval')], ['mcp_disk__'])).toEqual([])
  })
})

describe('a guard holds its tool wherever servers have taken their names', () => {
  const guard = entry('mcp_a__delete', 'requires_approval')

  it.each<[string, ResolvedCapability[], ToolDefinition[], string[]]>([
    ['a server that is renamed', [server(['c', 'a'], 'delete', 'read')], [guard], ['mcp_c__delete']],
    [
      'two servers that have swapped names, of a tool with one guard',
      [server(['b', 'a'], 'delete', 'read'), server(['a', 'b'], 'delete')],
      [guard, entry('mcp_b__delete', 'auto')],
      ['mcp_b__delete'],
    ],
    [
      'another server that has taken the name, and lists no such tool',
      [server(['c', 'a'], 'delete', 'read'), server(['a', 'b'], 'send')],
      [guard],
      ['mcp_c__delete', 'mcp_a__send'],
    ],
    [
      'a server that has renamed its tool, too',
      [server(['c', 'a'], 'erase', 'read'), server('a', 'delete')],
      [guard, entry('mcp_c__read', 'auto')],
      ['mcp_c__erase', 'mcp_c__read'],
    ],
    ['a server whose guard is taken back', [server(['c', 'a'], 'delete')], [guard, entry('mcp_a__delete', 'auto')], []],
  ])('%s', (_, servers, definitions, names) => {
    expect(waiting(servers, definitions)).toEqual(names)
  })
})
