import { checkArguments, checkSchema } from '../../../domain/capabilities/arguments.ts'

const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })

describe('the schema of a tool', () => {
  it.each<[string, Record<string, unknown>]>([
    ['empty', {}],
    ['without a type at the top', { properties: { a: { type: 'string' } } }],
    ['with what it does not know', object({ a: { type: 'string', colour: 'green' } }, { 'x-internal': true })],
    [
      'of an older draft, with its $id and definitions',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        $id: 'https://example.com/tool.json',
        ...object({ a: { $ref: '#/definitions/name' } }),
        definitions: { name: { type: 'string' } },
      },
    ],
    ['that names itself', object({ children: { type: 'array', items: { $ref: '#' } } })],
    ['with a property that is called $ref', object({ $ref: { type: 'string' } })],
    ['with data that looks like a $ref', object({ a: { const: { $ref: 'https://example.com' } } })],
    ['with escapes in a pointer', object({ a: { $ref: '#/$defs/x~1y%20z' } }, { $defs: { 'x/y z': {} } })],
  ])('may be one %s', (_, schema) => {
    expect(checkSchema(schema)).toBeUndefined()
  })

  it.each<[string, Record<string, unknown>, RegExp]>([
    ['of a list', { type: 'array' }, /^type must be "object" at the top$/],
    ['with an unknown type', object({ a: { type: 'strin' } }), /no JSON Schema.*properties\.a\.type must be one of/],
    ['with properties that are a list', { properties: [] }, /no JSON Schema.*properties must be object/],
    ['with an empty enum', object({ a: { enum: [] } }), /enum must not be empty/],
    [
      'with a remote $ref',
      object({ a: { $ref: 'https://example.com/a' } }),
      /\$ref "https:\/\/example\.com\/a" is not/,
    ],
    ['with a $ref to a file', object({ a: { $ref: 'other.json#/a' } }), /\$ref "other\.json#\/a" is not followed/],
    ['with a $ref to an anchor', object({ a: { $ref: '#name' } }), /\$ref "#name" is not followed/],
    ['with a $ref that leads nowhere', object({ a: { $ref: '#/$defs/b' } }), /no schema at the \$ref "#\/\$defs\/b"/],
    ['with a $ref into a prototype', object({ a: { $ref: '#/constructor' } }), /no schema at the \$ref/],
    ['with a broken $ref', object({ a: { $ref: '#/%' } }), /\$ref "#\/%" is not followed/],
    ['with a dynamic reference', object({ a: { $dynamicRef: '#x' } }), /\$ref "#x" is not followed/],
    ['with look-ahead', object({ a: { pattern: '^(?=a)' } }), /the pattern "\^\(\?=a\)" cannot be used \(RE2/],
    ['with a back-reference', { patternProperties: { '(a)\\1': {} } }, /the pattern "\(a\)\\\\1" cannot be used/],
    ['with what hides the rest of a pattern', object({ a: { pattern: '\\Q[\\E' } }), /invalid escape/],
    ['with a broken pattern', object({ a: { pattern: '(' } }), /the pattern "\(" cannot be used/],
  ])('may not be one %s', (_, schema, sentence) => {
    expect(checkSchema(schema)).toMatch(sentence)
  })
})

describe('arguments', () => {
  const schema = object(
    {
      name: { type: 'string', pattern: '^[a-z]+$' },
      code: { type: 'string', pattern: '^\\d{3}$' },
      unit: { enum: ['metric', 'imperial'] },
      sizes: { type: 'array', items: { $ref: '#/$defs/size' } },
    },
    { required: ['name'], additionalProperties: false, $defs: { size: { type: 'integer', minimum: 1 } } },
  )

  it('that the schema allows pass', () => {
    expect(checkArguments(schema, { name: 'ada', code: '123', unit: 'metric', sizes: [1, 2] })).toBeUndefined()
  })

  it('that it does not are told field by field', () => {
    const sentence = checkArguments(schema, { code: 'abc', unit: 5, sizes: [1, 'x'], colour: 1 })
    expect(sentence).toContain('name is required')
    expect(sentence).toContain('colour is not one of the fields')
    expect(sentence).toContain('code must match pattern "^\\d{3}$"')
    expect(sentence).toContain('unit must be one of ["metric","imperial"]')
    expect(sentence).toContain('sizes.1 must be integer')
    expect(sentence).not.toContain('and more')
  })

  it('are told of five problems at most, in bounded length', () => {
    const names = Array.from({ length: 50 }, (_, index) => `${'very_'.repeat(100)}${index}`)
    const sentence = checkArguments(object({}, { required: names }), {}) ?? ''
    expect(sentence.match(/is required/g)).toHaveLength(5)
    expect(sentence).toContain('and more')
    expect(sentence.length).toBeLessThan(2000)
  })

  it('of one call cost nothing of what the next may cost', () => {
    const list = object({ a: { items: { type: 'integer' } } })
    for (let call = 0; call < 20; call++) expect(checkArguments(list, { a: Array(50_000).fill(1) })).toBeUndefined()
  })

  it('may be a tenth apart', () => {
    expect(checkArguments(object({ a: { multipleOf: 0.1 } }), { a: 0.3 })).toBeUndefined()
    expect(checkArguments(object({ a: { multipleOf: 0.1 } }), { a: 0.35 })).toContain('a must be multiple of 0.1')
  })

  it('hold to what stands beside a $ref', () => {
    const beside = object({ a: { $ref: '#/$defs/text', maxLength: 2 } }, { $defs: { text: { type: 'string' } } })
    expect(checkArguments(beside, { a: 'abc' })).toContain('a must NOT have more than 2')
    expect(checkArguments(beside, { a: 1 })).toContain('a must be string')
  })

  it('hold to a $ref that points into another one, and to one that is true or false', () => {
    const properties = { a: { $ref: '#/$defs/x/properties/y' }, b: { $ref: '#/$defs/x' }, c: { $ref: '#/$defs/no' } }
    const nested = object(properties, { $defs: { x: object({ y: { type: 'number' } }), no: false } })
    expect(checkArguments(nested, { a: 1, b: { y: 2 } })).toBeUndefined()
    expect(checkArguments(nested, { a: '1' })).toContain('a must be number')
    expect(checkArguments(nested, { b: { y: '2' } })).toContain('b.y must be number')
    expect(checkArguments(nested, { c: 1 })).toContain('c boolean schema is false')
  })

  it('are checked on $async, $id, format and uniqueItems as if these were not there', () => {
    const odd = {
      $async: true,
      $id: 'x',
      ...object({ a: { type: 'string', format: 'email' }, b: { uniqueItems: true } }),
    }
    expect(checkArguments(odd, { a: 'no address', b: [1, 1] })).toBeUndefined()
    expect(checkArguments(odd, { a: 1 })).toContain('a must be string')
  })

  it('of a schema that cannot be used are refused with the reason', () => {
    expect(checkArguments({ type: 'array' }, {})).toMatch(/its parameters are wrong: type must be "object"/)
  })
})

describe('names that JavaScript knows', () => {
  const parse = (text: string): Record<string, unknown> => JSON.parse(text)

  it('are not there unless they are given', () => {
    for (const name of ['toString', 'constructor', '__proto__']) {
      expect(checkArguments({ required: [name] }, {})).toContain(`${name} is required`)
    }
    expect(checkArguments({ required: ['toString'] }, { toString: 1 })).toBeUndefined()
  })

  it('pollute nothing and pass no closed schema', () => {
    const schema = parse('{"properties":{"__proto__":{"type":"string"}},"additionalProperties":false}')
    expect(checkSchema(schema)).toBeUndefined()
    expect(checkArguments(schema, parse('{"__proto__":{"polluted":true}}'))).toContain('__proto__')
    expect(
      checkArguments(parse('{"$defs":{"__proto__":{"polluted":true}},"$ref":"#/$defs/__proto__"}'), {}),
    ).toBeUndefined()
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  it('and names that look like code are names', () => {
    const name = '"]; globalThis.injected = true; ["\u2028`;globalThis.injected = true;`\\'
    const schema = object(
      { [name]: { enum: [name], type: 'string' } },
      {
        required: [name],
        patternProperties: { '`;globalThis.injected=true//': {} },
        dependentRequired: { [name]: [name] },
      },
    )
    expect(checkSchema(schema)).toBeUndefined()
    expect(checkArguments(schema, { [name]: name })).toBeUndefined()
    expect(checkArguments(schema, { [name]: 1 })).toContain('must be string')
    expect(checkArguments({ type: 'object', $defs: {}, $ref: `#/${name}` }, {})).toContain('parameters are wrong')
    expect(globalThis).not.toHaveProperty('injected')
  })
})

describe('schemas and arguments made to take time', () => {
  /** The thread's own time, which other processes do not add to. */
  const within1s = (work: () => void): void => {
    const before = process.threadCpuUsage()
    work()
    const { user, system } = process.threadCpuUsage(before)
    expect((user + system) / 1000).toBeLessThan(1000)
  }
  const OVER = 'too large or too deeply nested'
  const doubling = (keyword: string, leaf: object) => {
    const twice = (index: number) => ({ [keyword]: [{ $ref: `#/$defs/a${index}` }, { $ref: `#/$defs/a${index}` }] })
    const steps = Array.from({ length: 60 }, (_, index) => [`a${index + 1}`, twice(index)])
    return object({ x: { $ref: '#/$defs/a60' } }, { $defs: { a0: leaf, ...Object.fromEntries(steps) } })
  }
  const nested = (depth: number) => {
    let value: unknown = 1
    for (let level = 0; level < depth; level++) value = { next: value }
    return { x: value }
  }
  const tree = (branches: number) => {
    const branch = { properties: { next: { $ref: '#/$defs/node' } } }
    return object({ x: { $ref: '#/$defs/node' } }, { $defs: { node: { allOf: Array(branches).fill(branch) } } })
  }
  const letters = (length: number) => Array.from({ length }, (_, index) => 'ab'[((index * index) % 7) % 2]).join('')
  const nulls = { anyOf: Array(300).fill({ type: 'null' }) }

  it.each<[string, Record<string, unknown>, Record<string, unknown>, string | undefined]>([
    ['definitions that double, each allowed', doubling('allOf', { type: 'string' }), { x: 'a' }, OVER],
    ['definitions that double, each refused', doubling('anyOf', { type: 'number' }), { x: 'a' }, OVER],
    ['a recursion that doubles over deep data', tree(2), nested(60), OVER],
    ['a recursion over data that is deeper than the stack', tree(1), nested(200_000), OVER],
    ['a schema that is only itself', { $ref: '#' }, {}, OVER],
    [
      'a pattern that would go back',
      object({ x: { pattern: '^(a|a)*$' } }),
      { x: `${'a'.repeat(40)}!` },
      'x must match',
    ],
    [
      'a large pattern on a long text',
      object({ x: { pattern: '([ab]{1,1000})[^ab]' } }),
      { x: letters(500_000) },
      OVER,
    ],
    [
      'many patterns',
      object({ x: { allOf: Array(300).fill({ pattern: '[ab]*a[ab]{9}c' }) } }),
      { x: letters(1e6) },
      OVER,
    ],
    [
      'many branches for many items',
      object({ x: { items: { allOf: nulls.anyOf } } }),
      { x: Array(250_000).fill(null) },
      OVER,
    ],
    ['many errors in branches', object({ x: { contains: nulls } }), { x: Array(250).fill(1) }, 'x must contain'],
    [
      'many errors copied',
      object(
        { x: { anyOf: [{ contains: nulls }, ...Array(250).fill({ $ref: '#/$defs/f' })] } },
        { $defs: { f: { type: 'string' } } },
      ),
      { x: Array(250).fill(1) },
      'x.0 must be null',
    ],
    [
      'a long list that is all wrong',
      object({ x: { items: { type: 'string' } } }),
      { x: Array(1e6).fill(1) },
      'x.0 must be string',
    ],
    ['a long text', object({ x: { type: 'string', maxLength: 2e6 } }), { x: 'a'.repeat(1e6) }, undefined],
  ])('end soon: %s', (_, schema, args, sentence) => {
    within1s(() => {
      const problem = checkArguments(schema, args)
      if (sentence === undefined) expect(problem).toBeUndefined()
      else expect(problem).toContain(sentence)
    })
  })

  it('are refused when their patterns are too large when written out', () => {
    within1s(() => {
      expect(checkSchema(object({ x: { pattern: '.{0,999}'.repeat(1000) } }))).toMatch(/patterns are too large/)
      const many = Array.from({ length: 20 }, (_, index) => ({ pattern: `(?:a{9}(b{9}(c{9}))){9}${index}` }))
      expect(checkSchema(object({ x: { allOf: many } }))).toMatch(/patterns are too large/)
    })
  })

  it('compile in time that is in proportion to their length, whatever points where', () => {
    const fields = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`f${index}`, { type: 'string' }]))
    let chain: object = object(fields)
    for (let level = 0; level < 50; level++) chain = { not: chain }
    const all = Array.from({ length: 50 }, (_, index) => ({ $ref: `#${'/not'.repeat(index + 1)}` }))
    within1s(() => {
      expect(checkArguments({ ...chain, allOf: all }, {})).toContain('must NOT be valid')
    })
  })

  it('are checked in no time when fifty large ones are written at once', () => {
    const fields = Object.fromEntries(Array.from({ length: 250 }, (_, index) => [`f${index}`, { type: 'string' }]))
    within1s(() => {
      for (let tool = 0; tool < 50; tool++) expect(checkSchema(object({ ...fields, [`t${tool}`]: {} }))).toBeUndefined()
    })
  })
})
