import { createDocumentThreads } from '../../../domain/kit/yaml/threads.ts'
import { readSkillMd, requireValid } from '../../../domain/tools/skills/skill-md.ts'

const threads = createDocumentThreads()
afterAll(() => threads.close())

const read = (text: string) => readSkillMd(threads, text, 'an organization')
const withFront = (...lines: string[]) => read(['---', ...lines, '---', 'Do it.', ''].join('\n'))
const VALID = ['name: pdf-forms', 'description: Fills in forms']

describe('a SKILL.md', () => {
  it('gives the fields of its front matter', async () => {
    const { fields, errors, warnings } = await withFront(
      'name: pdf-forms',
      'description: >',
      '  Fills in',
      '  forms',
      'license: MIT',
      'compatibility: Needs python3',
      'metadata: {author: Ada, version: "2.10", nested: {list: [1, true, null]}}',
      'allowed-tools: read_file bash',
    )
    expect({ errors, warnings }).toEqual({ errors: [], warnings: [] })
    expect(fields).toEqual({
      name: 'pdf-forms',
      description: 'Fills in forms\n',
      license: 'MIT',
      compatibility: 'Needs python3',
      metadata: { author: 'Ada', version: '2.10', nested: { list: [1, true, null] } },
      allowedTools: 'read_file bash',
      version: '2.10',
    })
  })

  it('needs a name and a description only', async () => {
    expect(requireValid(await withFront(...VALID, 'license:', 'metadata:', 'allowed-tools: []'))).toEqual({
      name: 'pdf-forms',
      description: 'Fills in forms',
      license: null,
      compatibility: null,
      metadata: {},
      allowedTools: '',
      version: '1.0',
    })
  })

  it.each([
    ['a byte order mark', '\ufeff---\nname: a\ndescription: b\n---\nDo it.'],
    ['lines that end with CRLF', '---\r\nname: a\r\ndescription: b\r\n---\r\nDo it.\r\n'],
    ['both', '\ufeff---\r\nname: a\r\ndescription: b\r\n---\r\nDo it.\r\n'],
    ['spaces after its lines of dashes', '---  \nname: a\ndescription: b\n---\t\nDo it.'],
    ['a line of dashes in its body', '---\nname: a\ndescription: b\n---\nDo it.\n---\nAgain.'],
  ])('may have %s', async (_, text) => {
    expect(await read(text)).toEqual({ fields: { name: 'a', description: 'b' }, errors: [], warnings: [] })
  })

  it('may have its tools as a list', async () => {
    const { fields } = await withFront(...VALID, 'allowed-tools:', '  - read_file', '  - "Bash(git:*)"')
    expect(fields.allowedTools).toBe('read_file Bash(git:*)')
  })

  it('counts characters, and not what they take', async () => {
    expect((await withFront('name: a', `description: ${'😀'.repeat(1024)}`)).errors).toEqual([])
  })

  it('reports all problems at once', async () => {
    const { fields, errors, warnings } = await read(
      [
        '---',
        'name: PDF--Forms',
        `license: ${'x'.repeat(501)}`,
        `compatibility: ${'x'.repeat(501)}`,
        'metadata: [1]',
        'allowed-tools: {a: b}',
        'colour: red',
        '---',
        'x'.repeat(100 * 1024 + 1),
      ].join('\n'),
    )
    expect(errors).toEqual([
      'metadata: must be a map of keys and values',
      'allowed-tools: must be a text, or a list of texts',
      'name: must be of a-z, 0-9 and single hyphens, which are not at its beginning or end',
      'description: is required',
      'license: must be at most 500 characters',
      'compatibility: must be at most 500 characters',
      'body: must be at most 102400 bytes of UTF-8',
    ])
    expect(warnings).toEqual(['colour: is not a field of a skill, and is ignored'])
    expect(fields.name).toBe('PDF--Forms')
  })

  it.each([
    ['a missing name', ['description: b'], 'name: is required'],
    ['an empty name', ['name: ""', 'description: b'], 'name: must not be empty'],
    ['a name without a value', ['name:', 'description: b'], 'name: is required'],
    ['a number as its name', ['name: 12', 'description: b'], 'name: must be a text; put it in quotes'],
    ['a list as its name', ['name: [a]', 'description: b'], 'name: must be a text'],
    ['a name of 65 characters', [`name: ${'a'.repeat(65)}`, 'description: b'], 'name: must be at most 64 characters'],
    ...['A', 'a_b', 'a b', '-a', 'a-', 'a--b', 'ä', 'a/b', '..', 'a\\nb'].map((name): [string, string[], string] => [
      `the name ${JSON.stringify(name)}`,
      [`name: "${name}"`, 'description: b'],
      'name: must be of a-z, 0-9 and single hyphens, which are not at its beginning or end',
    ]),
    ['a missing description', ['name: a'], 'description: is required'],
    ['an empty description', ['name: a', 'description: " "'], 'description: must not be empty'],
    [
      'a boolean as its description',
      ['name: a', 'description: yes it is', 'license: true'],
      /^license: must be a text/,
    ],
    [
      'a description of 1,025 characters',
      ['name: a', `description: ${'x'.repeat(1025)}`],
      'description: must be at most 1024 characters',
    ],
    ['metadata that is a text', [...VALID, 'metadata: a'], 'metadata: must be a map of keys and values'],
    [
      'too much metadata',
      [...VALID, `metadata: {a: ${'x'.repeat(16 * 1024)}}`],
      'metadata: must be at most 16384 bytes as JSON',
    ],
    [
      'metadata with __proto__',
      [...VALID, 'metadata: {a: [{__proto__: {b: 1}}]}'],
      'metadata: must not have the key __proto__',
    ],
    ['a map as its version', [...VALID, 'metadata: {version: {a: 1}}'], 'metadata.version: must be a text'],
    ['an empty version', [...VALID, 'metadata: {version: ""}'], 'metadata.version: must not be empty'],
    [
      'a long version',
      [...VALID, `metadata: {version: "${'1'.repeat(101)}"}`],
      'metadata.version: must be at most 100 characters',
    ],
    ['numbers as its tools', [...VALID, 'allowed-tools: [1, 2]'], 'allowed-tools: must be a text, or a list of texts'],
    [
      'too many tools',
      [...VALID, `allowed-tools: ${'tool '.repeat(401)}x`],
      'allowed-tools: must be at most 2000 characters',
    ],
    [
      'NUL in its front matter',
      ['name: a', 'description: "b\\0"'],
      'front matter: must not contain NUL or halves of characters',
    ],
    [
      'half a character in its metadata',
      [...VALID, 'metadata: {"a\\ud800": 1}'],
      'front matter: must not contain NUL or halves of characters',
    ],
    ['a list as its front matter', ['- a'], 'front matter: line 2: this is not a map of keys and values'],
    ['broken YAML', ['name: a', 'description: "b'], 'front matter: line 3: the quote " is not closed'],
    ['a key twice', ['name: a', 'description: b', 'name: c'], 'front matter: line 4: the key "name" is there twice'],
    ['a tag', ['name: a', 'description: !!js/function b'], /^front matter: line 3: anchors, aliases and tags are not/],
    [
      'an anchor',
      ['name: &a a', 'description: *a'],
      /^front matter: line 2: anchors, aliases and tags are not allowed/,
    ],
    [
      'a bomb of aliases',
      ['a: &a [x, x]', ...Array.from({ length: 30 }, (__, at) => `k${at}: &k${at} [*a, *a]`)],
      /^front matter: line 2: anchors, aliases and tags are not allowed/,
    ],
    ['a bomb of brackets', [`name: ${'['.repeat(60_000)}`], /^front matter: line \d+: /],
    ['a bomb of size', [`name: ${'x'.repeat(64 * 1024)}`], 'front matter: must be at most 65536 bytes'],
    ['an empty front matter', [], 'name: is required'],
  ])('with %s is refused', async (_, lines, problem) => {
    const skill = await withFront(...lines)
    expect(skill.errors[0]).toMatch(problem)
    expect(() => requireValid(skill)).toThrow(problem)
  })

  it.each([
    ['no front matter', 'Do it.', /^front matter: is missing/],
    ['nothing', '', /^front matter: is missing/],
    ['front matter that is not closed', '---\nname: a\ndescription: b\n', /^front matter: is not closed/],
    ['NUL in its body', '---\nname: a\ndescription: b\n---\na\0b', /^body: must not contain NUL/],
    ['too large a body', `---\nname: a\ndescription: b\n---\n${'ä'.repeat(51_201)}`, /^body: must be at most 102400 /],
  ])('with %s is refused', async (_, text, problem) => {
    expect((await read(text)).errors).toEqual([expect.stringMatching(problem)])
  })

  it('reports the size of the body even if the front matter cannot be read', async () => {
    const { errors } = await read(`---\nname: "a\n---\n${'x'.repeat(100 * 1024 + 1)}`)
    expect(errors).toEqual([expect.stringMatching(/^front matter: line 2: /), expect.stringMatching(/^body: must be/)])
  })

  it('that is text in a description is not taken for NUL', async () => {
    expect((await withFront('name: a', "description: 'the text \\u0000'")).errors).toEqual([])
  })

  it.each([
    [500, []],
    [501, ['body: SKILL.md has more than 500 lines']],
  ])('of %d lines has the warnings %j', async (lines, warnings) => {
    const skill = await withFront(...VALID, ...Array.from({ length: lines - 5 }, () => '# A comment'))
    expect(skill).toMatchObject({ errors: [], warnings })
  })

  it('has warnings for what may be a mistake', async () => {
    const { warnings } = await read('---\nname: a\ndescription: b\nmetadata: {version: 1.0}\nversion: 2\n---\n')
    expect(warnings).toEqual([
      'version: is not a field of a skill, and is ignored',
      'metadata.version: is the number 1; put a version in quotes',
      'body: is empty',
    ])
  })

  it('with hundreds of unknown keys has few warnings', async () => {
    const keys = Array.from({ length: 400 }, (_, at) => `k${at}: 1`)
    const { warnings } = await withFront(...VALID, ...keys)
    expect(warnings).toHaveLength(21)
    expect(warnings.at(-1)).toBe('front matter: has 380 more keys that are ignored')
  })
})
