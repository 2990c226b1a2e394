import type { Capability, Tool } from '../../../domain/capabilities/capability.ts'
import { composePrompt } from '../../../domain/capabilities/prompt.ts'
import { resolveCapabilities } from '../../../domain/capabilities/resolve.ts'

const capability = (id: string, dependencies: string[] = [], more: Partial<Capability> = {}): Capability => ({
  id,
  name: id,
  description: id,
  status: 'available',
  category: 'testing',
  dependencies,
  features: [],
  tools: [] as Tool[],
  ...more,
})
const refs = (...ids: string[]) => ids.map((ref) => ({ ref }))
const resolved = (ids: string[], registry: Capability[]) =>
  resolveCapabilities(refs(...ids), registry).map((each) => each.capability.id)

describe('resolving capabilities', () => {
  const registry = [
    capability('bash', ['files', 'time']),
    capability('skills', ['files']),
    capability('files', ['store']),
    capability('store'),
    capability('time'),
  ]

  it('puts dependencies before dependents, depth first, each once', () => {
    expect(resolved(['bash', 'skills', 'time'], registry)).toEqual(['store', 'files', 'time', 'bash', 'skills'])
  })

  it('keeps the order in which they are named', () => {
    expect(resolved(['time', 'store', 'skills', 'time'], registry)).toEqual(['time', 'store', 'files', 'skills'])
  })

  it('takes the later of two configurations at the first position, even for a dependency', () => {
    const given = [
      { ref: 'bash', config: 1 },
      { ref: 'time' },
      { ref: 'bash', config: 2 },
      { ref: 'files', config: null },
    ]
    expect(resolveCapabilities(given, registry).map((each) => [each.capability.id, each.config])).toEqual([
      ['store', undefined],
      ['files', null],
      ['time', undefined],
      ['bash', 2],
    ])
  })

  it('keeps a configuration when the later reference has none', () => {
    expect(resolveCapabilities([{ ref: 'time', config: 1 }, { ref: 'time' }], registry)).toMatchObject([{ config: 1 }])
  })

  it('leaves out capabilities that no longer exist', () => {
    expect(resolved(['gone', 'time'], [...registry, capability('late', ['gone'])])).toEqual(['time'])
    expect(resolved(['late'], [capability('late', ['gone'])])).toEqual(['late'])
  })

  it('leaves out capabilities that are coming soon, and dependencies only they need', () => {
    const soon = capability('soon', ['time'], { status: 'coming_soon' })
    expect(resolved(['soon', 'store'], [...registry, soon])).toEqual(['store'])
    expect(resolved(['now'], [...registry, soon, capability('now', ['soon'])])).toEqual(['now'])
  })

  it('ends when capabilities depend on each other', () => {
    const circle = [capability('a', ['b']), capability('b', ['c']), capability('c', ['a', 'c'])]
    expect(resolved(['a', 'b'], circle)).toEqual(['c', 'b', 'a'])
  })
})

describe('composing the prompt', () => {
  const adds = (id: string, systemPrompt?: string) => ({
    capability: capability(id, [], { systemPrompt }),
    config: undefined,
  })

  it('is the base alone when nothing is added', () => {
    expect(composePrompt('Help.', [adds('a'), adds('b', '')])).toBe('Help.')
    expect(composePrompt('', [])).toBe('')
  })

  it('has each addition in order, then the base', () => {
    expect(composePrompt('Help.', [adds('b', 'Be B.'), adds('none'), adds('a', 'Be\nA.')])).toBe(
      '<capability id="b">\nBe B.\n</capability>\n\n<capability id="a">\nBe\nA.\n</capability>\n\n' +
        '<system-prompt>\nHelp.\n</system-prompt>',
    )
  })

  it('is the additions alone when the base is empty', () => {
    expect(composePrompt('', [adds('a', 'Be A.')])).toBe('<capability id="a">\nBe A.\n</capability>')
  })
})
