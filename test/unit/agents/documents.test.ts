import { parseAgentDocument } from '../../../domain/agents/document/parse.ts'
import { createDocumentThreads } from '../../../domain/kit/yaml/threads.ts'
import { watchEventLoop } from '../../support/event-loop.ts'

const FRONT_MATTER = `---
name: Order desk
description: Knows orders and what they cost
default_model_id: model_0198c2f4a0b17c3d8e9fa1b2c3d4e5f6
tags:
  - support
  - orders
capabilities:
  - current_time
  - ref: web_fetch
    config: {allow: [a, b], deep: {most: 1}}
tools:
  - type: client_side
    name: find_order
    description: 'Finds an order'
    parameters:
      type: object
      required: [id]
---`.split('\n')

const threads = createDocumentThreads()
/** Returns what was read, or the message of the refusal. */
const readFor = (owner: string, text: string, contentType?: string): Promise<unknown> =>
  parseAgentDocument({ threads, owner }, text, contentType).catch((error) => `${error.kind}: ${error.message}`)
const read = (text: string, contentType?: string): Promise<unknown> => readFor('owner', text, contentType)
const readFront = (...lines: string[]): Promise<unknown> => read(['---', ...lines, '---', 'Hi'].join('\n'))
const EMPTY = 'invalid: system_prompt: must not be empty'

describe('front matter', () => {
  it('gives the fields that are known, and the body is the prompt', async () => {
    const text = [...FRONT_MATTER, '', 'Hi', '---', 'there', ''].join('\n')
    const expected = {
      name: 'Order desk',
      description: 'Knows orders and what they cost',
      default_model_id: 'model_0198c2f4a0b17c3d8e9fa1b2c3d4e5f6',
      tags: ['support', 'orders'],
      capabilities: [{ ref: 'current_time' }, { ref: 'web_fetch', config: { allow: ['a', 'b'], deep: { most: 1 } } }],
      tools: [
        {
          type: 'client_side',
          name: 'find_order',
          description: 'Finds an order',
          parameters: { type: 'object', required: ['id'] },
        },
      ],
      system_prompt: 'Hi\n---\nthere',
    }
    for (const type of [undefined, 'text/markdown; charset=utf-8', 'text/plain', 'application/yaml']) {
      expect(await read(text, type)).toEqual(expected)
    }
    const windows = `\ufeff${text.replaceAll('\n', '\r\n').replaceAll('---', '---  ')}`
    expect(await read(windows)).toEqual({ ...expected, system_prompt: 'Hi\r\n---  \r\nthere' })
  })

  it.each([
    ['---\n---\nHi', { system_prompt: 'Hi' }],
    ['---\n# nothing yet\n---\n\n\n Hi \n', { system_prompt: 'Hi' }],
    ['---\nid: a\nstatus: b\nusage: {}\n---\nHi', { id: 'a', system_prompt: 'Hi' }],
    ['---\nsystem_prompt: one\n---\n \n', { system_prompt: 'one' }],
    ['---\nsystem_prompt: one\n---\ntwo', { system_prompt: 'two' }],
    ['---\nsystem_prompt: " "\n---', { system_prompt: ' ' }],
    ['---\nsystem_prompt: |\n  one\n\n  two\n---', { system_prompt: 'one\n\ntwo\n' }],
    [
      '---\nname: 42\ntags: null\ncapabilities: x\n---\nHi',
      { name: 42, tags: null, capabilities: 'x', system_prompt: 'Hi' },
    ],
    ['---\n"name": x\n? description\n: y\n---\nHi', { name: 'x', description: 'y', system_prompt: 'Hi' }],
    ['---\nname: x\n---\n \n', EMPTY],
    ['---\nname: x\nsystem_prompt: ""\n---\n', EMPTY],
    ['---\nsystem_prompt:\n---', EMPTY],
    ['---\nname: x\n--\n', 'invalid: line 1: the front matter is not closed; end it with a line ---'],
    ['---', 'invalid: line 1: the front matter is not closed; end it with a line ---'],
  ])('%j', async (text, expected) => {
    expect(await read(text)).toEqual(expected)
  })

  it('has keys without special meaning', async () => {
    const text =
      '---\ncapabilities: [{ref: a, config: {__proto__: {x: 1}, 1: b, ~: c, true: d, "<<": e, constructor: f}}]\n---\nHi'
    const { capabilities } = await parseAgentDocument({ threads, owner: 'owner' }, text, undefined)
    expect(JSON.stringify(capabilities)).toBe(
      '[{"ref":"a","config":{"1":"b","__proto__":{"x":1},"~":"c","true":"d","<<":"e","constructor":"f"}}]',
    )
    expect({}).not.toHaveProperty('x')
    expect(await readFront('__proto__: {name: x}')).toEqual({ system_prompt: 'Hi' })
  })

  it.each([
    [['- a'], 'line 2: this is not a map of keys and values'],
    [['# c', 'a', 'b'], 'line 3: this is not a map of keys and values'],
    [['name: a', 'tags: []', 'name: b'], 'line 4: the key "name" is there twice'],
    [['a: {b: 1,', '  b: 2}'], 'line 3: the key "b" is there twice'],
    [['{"name": "a", "name": "b"}'], 'line 2: the key "name" is there twice'],
    [['a: &x 1', 'b: *x'], 'line 2: anchors, aliases and tags are not allowed; put text that begins with & in quotes'],
    [['a: !!binary aGk='], 'line 2: anchors, aliases and tags are not allowed; put text that begins with ! in quotes'],
    [['%YAML 1.2'], 'line 2: directives (lines that begin with %) are not allowed'],
    [['a: 1', '...', 'b: 1'], 'line 4: a second document begins; only one is allowed'],
    [['a: 1', '--- b'], 'line 3: a second document begins; only one is allowed'],
    [['a: [1,', '  2', 'b: 3'], 'line 2: the [ is not closed'],
    [['a:', '  - "b', '    c', 'd: 3'], 'line 3: the quote " is not closed'],
    [['a: 1e999'], 'line 2: a number must be finite; put text such as .inf or .nan in quotes'],
    [[`a: ${'['.repeat(64)}${']'.repeat(64)}`], 'line 2: nested more than 64 levels deep'],
  ])('is refused with its line: %j', async (lines, message) => {
    expect(await readFront(...lines)).toBe(`invalid: ${message}`)
  })
})

/** Ways to break a line of YAML. `start` is the indentation with any dashes, and `key` includes the colon. */
const BREAKAGES: Record<string, (start: string, key: string, value: string) => string | undefined> = {
  'an open quote': (start, key) => `${start}${key}"a`,
  'another open quote': (start, key) => `${start}${key}'a''`,
  'an open bracket': (start, key) => `${start}${key}[a, {b: c}`,
  'an open brace': (start, key) => `${start}${key}{a: [b], "c"`,
  'the wrong bracket': (start, key) => `${start}${key}[a, b}`,
  'a bracket of nothing': (start, key) => `${start}${key}]`,
  'an anchor': (start, key, value) => `${start}${key}&a ${value}`,
  'an alias': (start, key) => `${start}${key}*a`,
  'a tag': (start, key, value) => `${start}${key}!!str ${value}`,
  'bold text': (start, key) => `${start}${key}**a** b`,
  'an at sign': (start, key) => `${start}${key}@a`,
  'a backtick': (start, key) => `${start}${key}\`a\``,
  'an escape': (start, key) => `${start}${key}"\\q"`,
  'two colons': (start, key) => `${start}${key}a: b: c`,
  'no key': (start, key, value) => (key === '' || value === '' ? undefined : `${start}: a`),
  'a list as key': (start, key, value) => (key === '' ? undefined : `${start}[a]: ${value}`),
  'a merge key': (start, key, value) => (key === '' || value === '' ? undefined : `${start}<<: {a: 1}`),
  'no colon': (start, key, value) => (key === '' ? undefined : `${start}${key.replace(': ', ' ')}${value}`),
  'no number': (start, key, value) => (value === '' ? undefined : `${start}${key}.nan`),
  'text after a quote': (start, key, value) => (value === '' ? undefined : `${start}${key}"a" b`),
}

describe('front matter that is broken in a line', () => {
  it.each(Object.entries(BREAKAGES))('by %s is refused with that line', async (_name, damage) => {
    const wrong: unknown[] = []
    for (const [index, line] of FRONT_MATTER.entries()) {
      const [, start = '', key = '', value = ''] = /^([ -]*)(\w+:(?: |$))?(.*)$/.exec(line) ?? []
      const damaged = damage(start, key.replace(/:$/, ': '), value)
      if (line === '---' || damaged === undefined) continue
      const outcome = await read([...FRONT_MATTER.with(index, damaged), 'Hi'].join('\n'))
      if (!String(outcome).startsWith(`invalid: line ${index + 1}: `)) wrong.push({ damaged, outcome })
    }
    expect(wrong).toEqual([])
  })

  it.each(['\t', '   ', '         '])('by its indentation (%j) is refused with that line', async (indentation) => {
    for (const index of [2, 3, 4, 11, 14, 15]) {
      const damaged = FRONT_MATTER.with(index, `${indentation}${FRONT_MATTER[index]}`)
      expect([index, await read([...damaged, 'Hi'].join('\n'))]).toEqual([
        index,
        expect.stringMatching(`^invalid: line ${index + 1}: `),
      ])
    }
  })
})

describe('a document without front matter', () => {
  const ALIAS = 'name: a\nsystem_prompt: &b c\ndescription: *b'
  const REFUSED = 'anchors, aliases and tags are not allowed; put text that begins with & in quotes'
  const deep = (levels: number) => `{"system_prompt":"x","tools":${'['.repeat(levels)}${']'.repeat(levels)}}`
  it.each([
    // JSON
    [' {"name":"a","system_prompt":"b","x":1}', undefined, { name: 'a', system_prompt: 'b' }],
    [
      '\ufeff{"capabilities":["a"],"system_prompt":" "}',
      'application/json',
      { capabilities: [{ ref: 'a' }], system_prompt: ' ' },
    ],
    ['{"name":"a"}', undefined, EMPTY],
    ['{"system_prompt":null}', undefined, EMPTY],
    ['{"system_prompt":42}', undefined, { system_prompt: 42 }],
    ['{\n"name": "a"\n"b": 1}', 'text/plain', 'invalid: line 3: the document is not valid JSON'],
    ['{\n"name":\n\n', undefined, 'invalid: line 2: the document is not valid JSON'],
    [`{\n"name": ,"b": "${'x'.repeat(50)}"}`, undefined, 'invalid: line 2: the document is not valid JSON'],
    ['[1]', 'application/json', 'invalid: The document is not a JSON object'],
    ['---\nname: a\n---\nHi', 'application/json', 'invalid: line 1: the document is not valid JSON'],
    [deep(62), undefined, expect.objectContaining({ system_prompt: 'x' })],
    [deep(64), undefined, 'invalid: The document is nested more than 64 levels deep'],
    // YAML
    ['name: a\nsystem_prompt: |\n  b\n', undefined, { name: 'a', system_prompt: 'b\n' }],
    ['# c\n\n"system_prompt": a', 'text/plain', { system_prompt: 'a' }],
    ['# c\n{name: a, system_prompt: b}', undefined, { name: 'a', system_prompt: 'b' }],
    ['{name: a, system_prompt: b}', 'application/yaml', { name: 'a', system_prompt: 'b' }],
    ['---\nname: a\nsystem_prompt: b', 'text/yaml', { name: 'a', system_prompt: 'b' }],
    ['# c\nname: a', undefined, EMPTY],
    [ALIAS, undefined, `invalid: line 2: ${REFUSED}`],
    [ALIAS, 'application/x-yaml', `invalid: line 2: ${REFUSED}`],
    ['name: a\nname: b', undefined, 'invalid: line 2: the key "name" is there twice'],
    [`name: a\nb:${'\n- 1'.repeat(80_000)}`, undefined, expect.stringContaining('the YAML has too many parts')],
    ['name: a\nb: [', 'application/yaml', 'invalid: line 2: the [ is not closed'],
    ['a: b: c', 'application/yaml; charset=utf-8', 'invalid: line 1: a value with a colon in it needs quotes'],
    [`name: a\nb: ${'['.repeat(80)}${']'.repeat(80)}`, undefined, 'invalid: line 2: nested more than 64 levels deep'],
  ])('%j as %s', async (text, type, expected) => {
    expect(await read(text, type)).toEqual(expected)
  })

  it.each([
    ...[
      'Hi',
      ' Hi\n',
      '# Role\n\nYour name: you',
      'role: a\nname b',
      'name: a\nb: [',
      'name: a\n*note*: b',
      'Be: nice\nTo: *all*',
    ],
    ...[
      '- name: a',
      'Hello,\nname: a\n&b',
      `A list.\nname: a\n${'- a: 1\n'.repeat(50_000)}`,
      '--- \u2028 a',
      '[1]',
      '"',
    ],
  ])('%.40j is a prompt', async (text) => {
    expect(await read(text, 'text/plain')).toEqual({ system_prompt: text })
    expect(await read(`\ufeff${text}`)).toEqual({ system_prompt: text })
  })

  it.each(['', ' \n', '\ufeff', '\u2028'])('%j has no prompt', async (text) => {
    for (const type of [undefined, 'text/plain', 'application/yaml']) expect(await read(text, type)).toBe(EMPTY)
  })
})

describe('a document made to take time and memory', () => {
  const many = (text: string, times: number): string => text.repeat(times)
  const keys = Array.from({ length: 500_000 }, (_, position) => `k${position.toString(36)}: 1`)
  const refs = Array.from({ length: 9 }, (_, level) => `a${level}: &a${level} [${many(`*a${level - 1},`, 9)}]`)
  it.each(
    Object.entries({
      'an alias bomb': refs.join('\n'),
      'many keys': keys.join('\n'),
      'many keys in braces': `a: {${keys.join(', ')}}`,
      brackets: `a: ${many('[', 100_000)}`,
      braces: `a: ${many('{', 100_000)}`,
      'closed brackets': `a: ${many('[', 100_000)}${many(']', 100_000)}`,
      dashes: `a:\n${many('- ', 100_000)}b`,
      'explicit keys': many('? ', 100_000),
      colons: many(': ', 100_000),
      stairs: Array.from({ length: 2000 }, (_, level) => `${many(' ', level)}a:`).join('\n'),
      tags: `a: ${many('!a ', 300_000)}`,
      comments: `a: [${many('#\n ', 300_000)}`,
      'open quotes': many('- "\n', 500_000),
      'empty lines': `a:${many('\n', 3_000_000)} *b`,
      'what follows an error': `Hi\nname: b\n${many('- a: 1\n', 50_000)}`,
      documents: many('...\n', 500_000),
    }),
  )('is refused without blocking others: %s', async (_name, yaml) => {
    const eventLoop = watchEventLoop()
    // An owner's documents are read one after the other. Other owners have a thread of their own.
    const [refused, other] = await Promise.all([
      read(`---\nname: a\n${yaml}\n---\nHi`),
      readFor('other', '---\nname: b\n---\nHi'),
    ])
    const { busyMs } = eventLoop.stop()
    expect(refused).toMatch(/^invalid: /)
    expect(other).toEqual({ name: 'b', system_prompt: 'Hi' })
    expect(busyMs).toBeLessThan(2000)
  })

  it('is read when it is only long', async () => {
    const prompt = many('Some: text - with * marks: [and] {more} |\n  ', 25_000).trim()
    const blanks = ['\r', '\u2028', ' ', '\n', ' \r\n', '#\n', 'name ', '---\u2028', '\n---'].map((blank) =>
      many(blank, 300_000),
    )
    for (const text of [prompt, ...blanks.map((blank) => `${blank}Hi`)]) {
      expect(await parseAgentDocument({ threads, owner: 'owner' }, text, 'text/plain')).toEqual({ system_prompt: text })
    }
    expect(await readFront(`description: |\n  ${prompt}`)).toEqual(expect.objectContaining({ system_prompt: 'Hi' }))
    expect(await read(`{"name":"${many('\\n', 500_000)}","system_prompt":"Hi"}`)).toHaveProperty('name')
  })
})
