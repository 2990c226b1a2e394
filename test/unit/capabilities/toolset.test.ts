import type { ToolDefinition } from '../../../contract/tools.ts'
import { testMath } from '../../../domain/tools/capabilities/builtin/test-math.ts'
import type { Capability, Tool } from '../../../domain/tools/capabilities/capability.ts'
import { approveTools, buildToolset } from '../../../domain/tools/capabilities/toolset.ts'

const [add] = testMath.tools as [Tool]
const math = { capability: testMath, config: { precision: 2 } }
const builtin = (name: string, more: object = {}): ToolDefinition => ({
  type: 'builtin',
  name,
  description: '',
  parameters: {},
  ...more,
})
const client = (name: string, more: object = {}): ToolDefinition => ({
  type: 'client_side',
  name,
  description: 'The client does it.',
  parameters: { type: 'object', properties: { x: { type: 'string' } } },
  ...more,
})

describe('the tools that a model is offered', () => {
  it("are the capabilities', run by the service", () => {
    const toolset = buildToolset([math], [], [])
    expect([...toolset.keys()]).toEqual(['add', 'subtract', 'multiply', 'divide'])
    expect(toolset.get('add')).toEqual({
      spec: { name: 'add', description: add.description, parameters: add.parameters },
      displayName: 'Add',
      policy: 'auto',
      tool: add,
      config: { precision: 2 },
    })
  })

  it("and the client's, with what a provider insists on", () => {
    const toolset = buildToolset([], [client('ask'), client('bare', { parameters: {}, display_name: 'Bare' })], [])
    expect(toolset.get('ask')).toEqual({
      spec: { name: 'ask', description: 'The client does it.', parameters: client('ask').parameters },
      displayName: 'ask',
      policy: 'client_side',
    })
    expect(toolset.get('bare')).toMatchObject({
      spec: { parameters: { type: 'object', properties: {} } },
      displayName: 'Bare',
    })
  })

  it('are the session’s if agent and session have one of the same name', () => {
    const toolset = buildToolset(
      [],
      [client('a', { description: 'agent' }), client('b')],
      [client('a', { description: 'session' })],
    )
    expect([...toolset].map(([name, { spec }]) => [name, spec.description])).toEqual([
      ['a', 'session'],
      ['b', 'The client does it.'],
    ])
  })

  it('are the first capability’s if two provide one of the same name', () => {
    const other: Capability = { ...testMath, id: 'other', tools: [{ ...add, description: 'other' }] }
    expect(buildToolset([math, { capability: other, config: 1 }], [], []).get('add')?.config).toEqual({ precision: 2 })
  })
})

describe('a builtin definition', () => {
  it('changes the policy and the display name of the tool that it names, whose texts are its own', () => {
    const parameters = { type: 'object', properties: { other: {} } }
    const more = { policy: 'requires_approval', description: 'Sums.', display_name: 'Sum', parameters }
    expect(buildToolset([math], [builtin('add', more)], []).get('add')).toEqual({
      spec: { name: 'add', description: add.description, parameters: add.parameters },
      displayName: 'Sum',
      policy: 'requires_approval',
      tool: add,
      config: { precision: 2 },
    })
  })

  it('leaves the texts that it does not give', () => {
    expect(buildToolset([math], [], [builtin('add', { display_name: null })]).get('add')).toMatchObject({
      spec: { description: add.description },
      displayName: 'Add',
      policy: 'auto',
    })
  })

  it("of the session overrides the agent's", () => {
    const agent = [builtin('add', { policy: 'requires_approval' })]
    expect(buildToolset([math], agent, [builtin('add', { policy: 'auto' })]).get('add')?.policy).toBe('auto')
    expect(buildToolset([math], agent, [builtin('add', { display_name: 'Sum' })]).get('add')).toMatchObject({
      displayName: 'Sum',
      policy: 'requires_approval',
    })
  })

  it('of a tool that no capability provides is offered only if it is the client’s', () => {
    const toolset = buildToolset(
      [],
      [builtin('fly'), builtin('swim', { policy: 'requires_approval' })],
      [builtin('run', { policy: 'client_side' })],
    )
    expect([...toolset].map(([name, { policy, tool }]) => [name, policy, tool])).toEqual([
      ['run', 'client_side', undefined],
    ])
  })
})

it("a client's tool wins over a capability's tool of its name", () => {
  expect(buildToolset([math], [client('add')], []).get('add')).toEqual({
    spec: { name: 'add', description: 'The client does it.', parameters: client('add').parameters },
    displayName: 'add',
    policy: 'client_side',
  })
})

it("a builtin tool that the client runs keeps the texts of the capability's", () => {
  const definition = builtin('add', { ...client('add'), type: 'builtin', policy: 'client_side' })
  expect(buildToolset([math], [definition], []).get('add')).toEqual({
    spec: { name: 'add', description: add.description, parameters: add.parameters },
    displayName: 'Add',
    policy: 'client_side',
  })
})

it.each<[string, Partial<Tool>, string | null, string]>([
  ['runs', {}, null, 'auto'],
  ['runs in the version that was shown', { version: '1' }, '1', 'auto'],
  ['asks in another version', { version: '2' }, '1', 'requires_approval'],
  ['asks if an administrator wants it', { needsApproval: true }, null, 'requires_approval'],
])('a tool that is approved for a session %s', (_name, more, version, policy) => {
  const guarded = { capability: { ...testMath, tools: [{ ...add, ...more }] }, config: undefined }
  const toolset = buildToolset([guarded], [builtin('add', { policy: 'requires_approval' })], [])
  expect(approveTools(toolset, { add: version, gone: null }).get('add')?.policy).toBe(policy)
})

it('an approval takes no call from the client', () => {
  expect(approveTools(buildToolset([], [client('add')], []), { add: null }).get('add')?.policy).toBe('client_side')
})
