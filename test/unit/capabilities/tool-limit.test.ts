import type { Capability, Tool } from '../../../domain/tools/capabilities/capability.ts'
import type { ResolvedCapability } from '../../../domain/tools/capabilities/resolve.ts'
import { MAX_TOOLS, withinToolLimit } from '../../../domain/tools/capabilities/tool-limit.ts'

const tool = (name: string, more: Partial<Tool> = {}) => ({ name, ...more }) as Tool
const capability = (id: string, tools: Tool[], more: Partial<Capability> = {}) => ({ id, tools, ...more }) as Capability
const own = (count: number): ResolvedCapability => ({
  capability: capability(
    'own',
    Array.from({ length: count }, (_, at) => tool(`own_${at}`)),
  ),
  config: undefined,
})
const server = (id: string, count: number, config?: unknown, more: Partial<Capability> = {}): ResolvedCapability => ({
  capability: capability(
    `mcp:${id}`,
    Array.from({ length: count }, (_, at) => tool(`mcp_${id}__t${at}`, { nameAtServer: `t${at}` })),
    { areServerToolsKnown: true, ...more },
  ),
  config,
})
const countsOf = (capabilities: ResolvedCapability[]) => capabilities.map((one) => one.capability.tools.length)

describe('the limit on the tools of a prompt', () => {
  it('leaves everything as it is where there is room', () => {
    const given = [own(20), server('a', 100)]
    expect(withinToolLimit(given, [])).toEqual(given)
    expect(withinToolLimit([own(MAX_TOOLS + 1)], [])).toEqual([own(MAX_TOOLS + 1)])
  })

  it("takes the service's and the client's tools first, then the servers' in their order", () => {
    const definitions = Array.from({ length: 20 }, (_, at) => ({ name: `client_${at}` }))
    const limited = withinToolLimit([server('a', 50), own(10), server('b', 60), server('c', 2)], definitions)
    expect(countsOf(limited)).toEqual([50, 10, 48, 0])
    expect(limited.map(({ capability }) => capability.systemPrompt)).toEqual([
      undefined,
      undefined,
      expect.stringMatching(/12 of this capability are left out.*: mcp_b__t48, mcp_b__t49, .*, mcp_b__t59\.$/),
      expect.stringMatching(/2 of this capability are left out.*: mcp_c__t0, mcp_c__t1\.$/),
    ])
  })

  it('counts a tool that a definition changes once', () => {
    const limited = withinToolLimit([own(100), server('a', 28)], [{ name: 'own_1' }, { name: 'mcp_a__t27' }])
    expect(countsOf(limited)).toEqual([100, 28])
  })

  it("names at most 50 of the tools left out, after the prompt's own text", () => {
    const [limited] = withinToolLimit([server('a', 200, undefined, { systemPrompt: 'Hello.' })], [])
    const text = String(limited?.capability.systemPrompt)
    expect(text).toMatch(/^Hello\.\n\nAt most 128 tools .* 72 of this .* and 22 more\.$/)
    expect(text.match(/mcp_a__/g)).toHaveLength(50)
  })

  const NONE = /^None of the tools is offered, because the configuration of this capability is wrong\.$/
  it.each<[config: unknown, names: string[], prompt: RegExp | undefined]>([
    [{ tools: ['t1'] }, ['t1'], undefined],
    [{ tools: [] }, [], undefined],
    [{ tools: null }, ['t0', 't1', 't2'], undefined],
    [{}, ['t0', 't1', 't2'], undefined],
    [null, ['t0', 't1', 't2'], undefined],
    [{ tools: ['t1', 'none', 'constructor'] }, ['t1'], /^The server has no tools named "none", "constructor"\.$/],
    [{ tools: ['mcp_a__t1'] }, [], /named "mcp_a__t1"\.$/],
    [{ tools: ['</capability>\n'] }, [], /named "&lt;\/capability>\\n"\.$/],
    [{ tools: Array.from({ length: 60 }, (_, at) => `u${at}`) }, [], /"u49" and 10 more\.$/],
    [{ tools: 't1' }, [], NONE],
    [{ tools: ['t1', 1] }, [], NONE],
    [{ tool: ['t1'] }, [], NONE],
    [{ tools: ['t1'], more: 1 }, [], NONE],
    [['t1'], [], NONE],
    ['t1', [], NONE],
  ])('with the configuration %j offers the tools %j', (config, names, prompt) => {
    const [limited] = withinToolLimit([server('a', 3, config)], [])
    expect(limited?.capability.tools.map(({ nameAtServer }) => nameAtServer)).toEqual(names)
    const { systemPrompt } = limited?.capability ?? {}
    if (prompt === undefined) expect(systemPrompt).toBeUndefined()
    else expect(systemPrompt).toMatch(prompt)
  })

  it('says that an empty list has no such tools, and only that an unknown list is unknown', () => {
    const promptOf = (areServerToolsKnown: boolean) => {
      const more = { areServerToolsKnown, systemPrompt: 'Hello.' }
      return withinToolLimit([server('a', 0, { tools: ['one'] }, more)], [])[0]?.capability.systemPrompt
    }
    expect(promptOf(true)).toBe('Hello.\n\nThe server has no tools named "one".')
    expect(promptOf(false)).toBe('Hello.')
  })

  it('is what a configuration makes room under', () => {
    expect(countsOf(withinToolLimit([server('a', 200, { tools: ['t199'] }), server('b', 127)], []))).toEqual([1, 127])
  })
})
