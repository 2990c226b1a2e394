import { parse as parseYaml } from 'yaml'
import { parseAgentDocument } from '../../../domain/agents/document/parse.ts'
import { documentFileName, type RenderedAgent, renderAgentDocument } from '../../../domain/agents/document/render.ts'
import { DomainError } from '../../../domain/kit/errors.ts'
import { createDocumentThreads } from '../../../domain/kit/yaml/threads.ts'
import { countOf } from '../../support/counts.ts'
import { createRandom } from '../../support/random.ts'
import { seedsOf } from '../../support/seeds.ts'

const threads = createDocumentThreads()
const AGENTS = countOf('drawnAgents')
const BROKEN = countOf('brokenDocuments')

const MARKS = [
  ...['---', '\n---\n', '...', '\n', '\n\n', '\r\n', '\r', '\t', ' ', '  ', ': ', ':', ' #', '#', '&a', '*a', '!!str'],
  ...[
    '|',
    '>',
    '|-',
    '%YAML',
    '@',
    '`',
    '"',
    "'",
    '\\',
    '- ',
    '? ',
    ', ',
    '[',
    ']',
    '{',
    '}',
    '<<',
    '=',
    '~',
    '\u2028',
  ],
  ...['\u2029', '\u0085', '\u00a0', '\ufeff', '\u0001', '\u007f', '\u009f', '\u200d', '\uffff', '\ue000', '👍🏽', '$&'],
]
const WORDS = [
  ...[
    'null',
    'true',
    'No',
    'y',
    'ON',
    '1',
    '-1',
    '0o17',
    '0x1F',
    '1e3',
    '.5',
    '.inf',
    '-.Inf',
    '.NaN',
    '1_000',
    '12:30',
  ],
  ...[
    '2024-01-01',
    '2024-01-01T00:00:00Z',
    '+1',
    '',
    'name',
    'system_prompt:',
    'Hello',
    'crème',
    '日本語',
    'ну',
    'a: b',
  ],
]
const KEYS = [
  '',
  '1',
  '__proto__',
  'a: b',
  '<<',
  '=',
  '~',
  'y',
  '- a',
  '?',
  'constructor',
  'toString',
  '# a',
  '---',
  '"',
]
const NUMBERS = [0, 1, -1, 0.1, 1e21, -1e21, 1e-7, 5e-324, 1.7976931348623157e308, 2 ** 53, 2 ** 70, 1e6]

function createDraw(seed: number) {
  const random = createRandom(seed)
  const below = (end: number): number => Math.floor(random() * end)
  const pick = <T>(list: readonly [T, ...T[]] | T[]): T => list[below(list.length)] as T
  const many = <T>(most: number, draw: () => T): T[] => Array.from({ length: below(most + 1) }, draw)
  const character = (): string => {
    const code = pick([1 + below(0x7f), 1 + below(0xd7ff), 0xe000 + below(0x2000), 0x10000 + below(0x100000)])
    return String.fromCodePoint(code)
  }
  const piece = (): string => pick([() => pick(MARKS), () => pick(WORDS), character, () => 'some words'])()
  const text = (): string => pick([() => pick(WORDS), () => many(12, piece).join(pick(['', ' ', '\n'])), piece])()
  const key = (): string => pick([() => pick(KEYS), text, () => 'key', () => 'k'.repeat(below(1500))])()
  const scalar = (): unknown =>
    pick<() => unknown>([
      text,
      () => pick(NUMBERS),
      () => random() * 10 ** below(30),
      () => pick([null, true, false]),
    ])()
  const json = (depth: number): unknown =>
    depth === 0 || below(3) === 0 ? scalar() : below(2) === 0 ? many(4, () => json(depth - 1)) : map(depth)
  const map = (depth: number): Record<string, unknown> =>
    Object.fromEntries(many(5, () => [key(), json(depth - 1)] as const))
  const deep = (): unknown =>
    Array.from({ length: 50 }).reduce((inner) => (below(2) === 0 ? [inner] : { a: inner }), scalar())
  return { below, pick, many, text, map, config: () => pick([() => json(below(12)), deep])() }
}

function drawAgent(seed: number): RenderedAgent {
  const { below, pick, many, text, map, config } = createDraw(seed)
  const tool = {
    description: text(),
    parameters: map(4),
    ...(below(2) === 0 ? {} : { display_name: pick([null, text()]) }),
  }
  return {
    name: text(),
    description: pick([null, text()]),
    system_prompt: text() || ' ',
    default_model_id: pick([null, 'model_0198c2f4a0b17c3d8e9fa1b2c3d4e5f6']),
    tags: many(3, text),
    limits: pick([{}, { max_tool_calls: 1 + below(9) }]),
    capabilities: many(3, () => ({ ref: text(), ...(below(2) === 0 ? {} : { config: config() }) })),
    tools: many(3, () =>
      pick<RenderedAgent['tools'][number]>([
        { type: 'client_side', name: 'look_up', ...tool },
        { type: 'builtin', name: 'on', ...tool, ...(below(2) === 0 ? {} : { policy: 'requires_approval' }) },
      ]),
    ),
  }
}

/** Returns the agent as a document has it, without defaults. */
const given = ({ description, default_model_id, tags, limits, capabilities, tools, ...rest }: RenderedAgent) => ({
  ...rest,
  ...(description == null ? {} : { description }),
  ...(default_model_id == null ? {} : { default_model_id }),
  ...(tags.length === 0 ? {} : { tags }),
  ...(Object.keys(limits).length === 0 ? {} : { limits }),
  ...(capabilities.length === 0 ? {} : { capabilities }),
  ...(tools.length === 0 ? {} : { tools }),
})
/** Serialises with sorted keys, as entries, so that keys such as __proto__ do not take effect. */
const sorted = (value: unknown): string =>
  JSON.stringify(value, (_key, inner) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1))
      : inner,
  )
const frontMatter = (document: string): string => document.slice(4, document.indexOf('\n---\n', 4) + 1)

describe.each(seedsOf('documents'))('any agent (SEED=%i)', (seed) => {
  it(`is unchanged after an export and an import, ${AGENTS} times`, async () => {
    for (let number = 0; number < AGENTS; number++) {
      const own = seed + number
      const agent = drawAgent(own)
      const parsed = await parseAgentDocument({ threads, owner: 'owner' }, renderAgentDocument(agent), 'text/markdown')
      expect({ seed: own, agent: sorted(parsed) }).toEqual({ seed: own, agent: sorted(given(agent)) })
    }
  })

  it('keeps the names of its keys, whatever was parsed before', async () => {
    // V8's JSON.parse takes an escaped key for this one, once it has seen it at the same place of an object
    // (nodejs/node#63785).
    JSON.parse(String.raw`{"type":"a","\\":1}`)
    const tool = { type: 'client_side' as const, name: 'a', description: '', parameters: { type: 'a', '"': 1 } }
    const agent = { ...drawAgent(seed), tools: [tool] }
    const parsed = await parseAgentDocument({ threads, owner: 'owner' }, renderAgentDocument(agent), 'text/markdown')
    expect(Object.keys((parsed.tools as typeof agent.tools)[0]?.parameters ?? {})).toEqual(['type', '"'])
  })

  it('has front matter that both versions of YAML read in the same way', () => {
    for (let number = 0; number < AGENTS; number++) {
      const { system_prompt, ...agent } = drawAgent(seed + number)
      const yaml = frontMatter(renderAgentDocument({ ...agent, system_prompt: 'Hello', capabilities: [], tools: [] }))
      const { system_prompt: _, ...expected } = given({ ...agent, system_prompt, capabilities: [], tools: [] })
      for (const version of ['1.1', '1.2'] as const) expect(parseYaml(yaml, { version })).toEqual(expected)
    }
  })

  it(`is refused in a sentence or read when its document is damaged, ${BROKEN} times`, async () => {
    for (let number = 0; number < BROKEN; number++) {
      const { below, pick } = createDraw(seed - 1 - number)
      const document = renderAgentDocument(drawAgent(seed + number))
      const place = below(document.length)
      const damaged = document.slice(0, place) + pick(['', ...MARKS]) + document.slice(place + below(4))
      const outcome = await parseAgentDocument(
        { threads, owner: 'owner' },
        damaged,
        pick([undefined, 'application/yaml']),
      ).catch((error) => error)
      if (!(outcome instanceof DomainError)) expect(outcome).toHaveProperty('system_prompt')
      else expect(outcome.message).toMatch(/^(line \d+: |system_prompt: must not be empty$)/)
    }
  })
})

describe('a document of an agent', () => {
  const AGENT: RenderedAgent = {
    name: 'Order desk',
    description: 'Knows orders: where they are, and what they cost.',
    system_prompt: '# Role\n\nYou answer.\n\n---\nname: no key',
    default_model_id: 'model_0198c2f4a0b17c3d8e9fa1b2c3d4e5f6',
    tags: ['support', 'no'],
    limits: { max_model_calls: 20, max_output_tokens: 4000 },
    capabilities: [{ ref: 'current_time' }, { ref: 'web_fetch', config: null }, { ref: 'noop', config: { a: [1] } }],
    tools: [
      {
        type: 'client_side',
        name: 'find_order',
        parameters: { type: 'object', properties: { id: { type: 'string' } } },
        description: 'Finds an order.\nTakes its id.',
      },
    ],
  }

  it('is pleasant to read', () => {
    expect(renderAgentDocument(AGENT)).toBe(`---
name: Order desk
description: "Knows orders: where they are, and what they cost."
default_model_id: model_0198c2f4a0b17c3d8e9fa1b2c3d4e5f6
tags:
  - support
  - "no"
limits:
  max_model_calls: 20
  max_output_tokens: 4000
capabilities:
  - current_time
  - ref: web_fetch
    config: null
  - ref: noop
    config:
      a:
        - 1
tools:
  - type: client_side
    name: find_order
    description: |-
      Finds an order.
      Takes its id.
    parameters:
      type: object
      properties:
        id:
          type: string
---

# Role

You answer.

---
name: no key
`)
  })

  it('leaves out defaults, and has a prompt in its front matter if a body would change it', () => {
    const plain = {
      name: 'A',
      description: null,
      default_model_id: null,
      tags: [],
      capabilities: [],
      tools: [],
      limits: {},
    }
    expect(renderAgentDocument({ ...plain, system_prompt: 'Hi' })).toBe('---\nname: A\n---\n\nHi\n')
    expect(renderAgentDocument({ ...plain, system_prompt: ' Hi\n' })).toBe(
      '---\nname: A\nsystem_prompt: " Hi\\n"\n---\n',
    )
  })

  it('is the same agent, however large its values', async () => {
    const config = { many: Array.from({ length: 50_000 }, (_, position) => position), ['__proto__']: 1, '<<': 'a' }
    const document = renderAgentDocument({ ...AGENT, capabilities: [{ ref: 'noop', config }] })
    const parsed = await parseAgentDocument({ threads, owner: 'owner' }, document, undefined)
    expect(sorted(parsed)).toBe(sorted({ ...given(AGENT), capabilities: [{ ref: 'noop', config }] }))
  })

  it.each([
    ['Crème brûlée: L’Agent №5!', 'creme-brulee-l-agent-no5.md'],
    ['../../etc/passwd', 'etc-passwd.md'],
    ['日本', 'agent.md'],
    [`${'x'.repeat(99)} y z`, `${'x'.repeat(99)}.md`],
  ])('has a file name: %s', (name, expected) => {
    expect(documentFileName(name)).toBe(expected)
  })
})
