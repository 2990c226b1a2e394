import { nameTools, slugOf, slugOfTool, toolNameOf } from '../../../domain/tools/mcp-servers/tool-names.ts'

describe("a server's slug", () => {
  it.each<[name: string, slug: string | RegExp]>([
    ['github', 'github'],
    ['GitHub', 'github'],
    ['My  Server (new)', 'my_server_new'],
    ['__a__b__', 'a_b'],
    ['a-b_9', 'a-b_9'],
    ['.hidden.', 'hidden'],
    ['a 🚀 b', 'a_b'],
    ['🚀', /^[0-9a-f]{6}$/],
    ['___', /^[0-9a-f]{6}$/],
    ['Überblick', /^berblick_[0-9a-f]{6}$/],
    ['東京', /^[0-9a-f]{6}$/],
    ['x'.repeat(32), 'x'.repeat(32)],
    ['x'.repeat(33), /^x{23}_[0-9a-f]{8}$/],
    [`${'x'.repeat(22)}_${'y'.repeat(20)}`, /^x{22}_[0-9a-f]{8}$/],
    [`ü${'x'.repeat(40)}`, /^x{23}_[0-9a-f]{8}$/],
  ])('of %j is %s', (name, slug) => {
    expect(slugOf(name)).toMatch(typeof slug === 'string' ? new RegExp(`^${slug}$`) : slug)
    expect(slugOf(name)).toMatch(/^(?!_)(?!.*__)[a-z0-9_-]{1,32}(?<!_)$/)
  })

  it('differs between names that differ only in foreign letters', () => {
    const names = ['Büro', 'Bäro', 'Bro', '東京', '京都', `${'x'.repeat(40)}a`, `${'x'.repeat(40)}b`]
    expect(new Set(names.map(slugOf)).size).toBe(names.length)
  })
})

describe("a tool's name", () => {
  it.each<[slug: string, tool: string, name: string | RegExp]>([
    ['a', 'search', 'mcp_a__search'],
    ['a', '_Search-1', 'mcp_a___Search-1'],
    ['a', 'files.read', /^mcp_a__files_read_[0-9a-f]{8}$/],
    ['a', 'ü', /^mcp_a____[0-9a-f]{8}$/],
    ['a', 't'.repeat(57), `mcp_a__${'t'.repeat(57)}`],
    ['a', 't'.repeat(58), /^mcp_a__t{48}_[0-9a-f]{8}$/],
    ['s'.repeat(32), 't'.repeat(128), /^mcp_s{32}__t{17}_[0-9a-f]{8}$/],
  ])('of server %s and tool %s is %s', (slug, tool, name) => {
    expect(toolNameOf(slug, tool)).toMatch(typeof name === 'string' ? new RegExp(`^${name}$`) : name)
    expect(toolNameOf(slug, tool)).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
  })

  it('differs between tools that differ only in other characters', () => {
    const names = ['a.b', 'a/b', 'a_b', `${'t'.repeat(90)}1`, `${'t'.repeat(90)}2`].map((tool) => toolNameOf('s', tool))
    expect(new Set(names).size).toBe(names.length)
  })

  it('belongs to the first of two tools that have the same', () => {
    const second = toolNameOf('s', 'a.b').slice('mcp_s__'.length)
    const { named, leftOut } = nameTools('s', [{ name: 'a.b' }, { name: second }, { name: 'c' }])
    expect(named.map(({ tool }) => tool.name)).toEqual(['a.b', 'c'])
    expect(leftOut).toEqual([{ name: second, reason: 'another tool has its name already' }])
  })
})

it.each<[name: string, slug: string | undefined]>([
  ['mcp_a__search', 'a'],
  ['mcp_a___Search', 'a'],
  ['mcp_a_b-c__d__e', 'a_b-c'],
  [toolNameOf('s'.repeat(32), 'a.b'), 's'.repeat(32)],
  ['mcp_a_search', undefined],
  ['mcp___a', undefined],
  ['read_file', undefined],
])('the name %s is one of the server %s', (name, slug) => {
  expect(slugOfTool(name)).toBe(slug)
})
