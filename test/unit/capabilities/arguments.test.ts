import { checkArguments, checkSchemas } from '../../../domain/tools/capabilities/arguments/check.ts'
import { createSchemaThreads } from '../../../domain/tools/capabilities/arguments/threads.ts'
import { watchEventLoop } from '../../support/event-loop.ts'

type Schema = Record<string, unknown>
type Arguments = Record<string, unknown>

const threads = createSchemaThreads()
const checkSchema = async (schema: Schema) => (await checkSchemas(threads, [schema]))[0]
const check = async (schema: Schema, args: Arguments, isTrusted = false) =>
  (await checkArguments(threads, [{ schema, args, isTrusted }]))[0]
/** Checks what never ends with a shorter limit than the service's second. */
const checkBriefly = async (schema: Schema, args: Arguments) =>
  (await checkArguments(threads, [{ schema, args, isTrusted: false }], { timeLimitMs: 300 }))[0]

const nest = (depth: number): Schema => {
  let schema: Schema = {}
  for (let level = 0; level < depth; level++) schema = { not: schema }
  return schema
}
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })

describe('the schema of a tool', () => {
  it.each<[string, Schema]>([
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
    ['with a name of its own in a part', object({ a: { $anchor: 'one' }, b: { $ref: '#one' } })],
    ["with draft 4's id in a part", object({ a: { id: 'one', type: 'string' } })],
    ['with look-ahead and a back-reference', object({ a: { pattern: '^(?=a)(a)\\1$' } })],
    ['with escapes in a pointer', object({ a: { $ref: '#/$defs/x~1y%20z' } }, { $defs: { 'x/y z': {} } })],
  ])('may be one %s', async (_, schema) => {
    expect(await checkSchema(schema)).toBeUndefined()
  })

  it.each<[string, Schema, RegExp]>([
    ['of a list', { type: 'array' }, /^type must be "object" at the top$/],
    [
      'with an unknown type',
      object({ a: { type: 'strin' } }),
      /must be a JSON Schema.*properties\.a\.type must be one of/,
    ],
    ['with properties that are a list', { properties: [] }, /must be a JSON Schema.*properties must be object/],
    ['with an empty enum', object({ a: { enum: [] } }), /enum must have non-empty array/],
    [
      'with a remote $ref',
      object({ a: { $ref: 'https://example.com/a' } }),
      /\$ref "https:\/\/example\.com\/a" is not/,
    ],
    ['with a $ref to a file', object({ a: { $ref: 'other.json#/a' } }), /\$ref "other\.json#\/a" is not followed/],
    ['with a $ref to an anchor that is not there', object({ a: { $ref: '#name' } }), /no schema at the \$ref "#name"/],
    ['with a $ref that leads nowhere', object({ a: { $ref: '#/$defs/b' } }), /no schema at the \$ref "#\/\$defs\/b"/],
    ['with a broken $ref', object({ a: { $ref: '#/%' } }), /must be a JSON Schema.*malformed/],
    [
      'with a broken pattern',
      object({ a: { pattern: '(' } }),
      /must be a JSON Schema.*Invalid regular expression: \/\(\//,
    ],
    ['of an asynchronous kind inside', object({ a: { $async: true, type: 'string' } }), /async schema in sync schema/],
    ['nested more deeply than can be copied', nest(200_000), /too large or too deeply nested/],
  ])('may not be one %s', async (_, schema, sentence) => {
    expect(await checkSchema(schema)).toMatch(sentence)
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

  it('that the schema allows pass', async () => {
    expect(await check(schema, { name: 'ada', code: '123', unit: 'metric', sizes: [1, 2] })).toBeUndefined()
  })

  it('that it does not allow are reported field by field', async () => {
    const sentence = await check(schema, { code: 'abc', unit: 5, sizes: [1, 'x'], colour: 1 })
    expect(sentence).toContain('name is required')
    expect(sentence).toContain('colour is not one of the fields')
    expect(sentence).toContain('code must match pattern "^\\d{3}$"')
    expect(sentence).toContain('unit must be one of ["metric","imperial"]')
    expect(sentence).toContain('sizes.1 must be integer')
    expect(sentence).not.toContain('and more')
  })

  it('get at most five problems, of bounded length', async () => {
    const names = Array.from({ length: 50 }, (_, index) => `${'very_'.repeat(100)}${index}`)
    const sentence = await check(object({}, { required: names }), {})
    expect(sentence?.match(/is required/g)).toHaveLength(5)
    expect(sentence).toContain('and more')
    expect(sentence?.length).toBeLessThan(2000)
  })

  it('may be multiples of a tenth', async () => {
    expect(await check(object({ a: { multipleOf: 0.1 } }), { a: 0.3 })).toBeUndefined()
    expect(await check(object({ a: { multipleOf: 0.1 } }), { a: 0.35 })).toContain('a must be multiple of 0.1')
  })

  it('are checked against keywords beside a $ref', async () => {
    const beside = object({ a: { $ref: '#/$defs/text', maxLength: 2 } }, { $defs: { text: { type: 'string' } } })
    expect(await check(beside, { a: 'abc' })).toContain('a must NOT have more than 2')
    expect(await check(beside, { a: 1 })).toContain('a must be string')
  })

  it('follow a $ref into another schema, and a $ref to true or false', async () => {
    const properties = { a: { $ref: '#/$defs/x/properties/y' }, b: { $ref: '#/$defs/x' }, c: { $ref: '#/$defs/no' } }
    const nested = object(properties, { $defs: { x: object({ y: { type: 'number' } }), no: false } })
    expect(await check(nested, { a: 1, b: { y: 2 } })).toBeUndefined()
    expect(await check(nested, { a: '1' })).toContain('a must be number')
    expect(await check(nested, { b: { y: '2' } })).toContain('b.y must be number')
    expect(await check(nested, { c: 1 })).toContain('c boolean schema is false')
  })

  it('are checked on $schema, $id, $async and format as if these were not there', async () => {
    const odd = {
      $async: true,
      $id: 'https://example.com/x',
      ...object({ a: { type: 'string', format: 'email' }, b: { format: 'unheard-of' } }),
      $schema: 'https://example.com/schema',
    }
    expect(await check(odd, { a: 'no address', b: 1 })).toBeUndefined()
    expect(await check(odd, { a: 1 })).toContain('a must be string')
  })

  it('of a schema that cannot be used are refused with the reason', async () => {
    expect(await check({ type: 'array' }, {})).toMatch(/its parameters are wrong: type must be "object"/)
  })
})

describe('names that JavaScript knows', () => {
  const parse = (text: string): Record<string, unknown> => JSON.parse(text)

  it('are missing unless they are given', async () => {
    for (const name of ['toString', 'constructor', '__proto__']) {
      expect(await check({ required: [name] }, {})).toContain(`${name} is required`)
    }
    expect(await check({ required: ['toString'] }, { toString: 1 })).toBeUndefined()
  })

  it('pollute nothing and do not pass a closed schema', async () => {
    const schema = parse('{"properties":{"__proto__":{"type":"string"}},"additionalProperties":false}')
    expect(await checkSchema(schema)).toBeUndefined()
    expect(await check(schema, parse('{"__proto__":{"polluted":true}}'))).toContain('__proto__')
    const named = parse('{"$defs":{"__proto__":{"polluted":true}},"$ref":"#/$defs/__proto__"}')
    expect(await check(named, {})).toBeUndefined()
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  it('and names that look like code are only names', async () => {
    const name = '"]; globalThis.injected = true; ["\u2028`;globalThis.injected = true;`\\'
    const schema = object(
      { [name]: { enum: [name], type: 'string' } },
      {
        required: [name],
        patternProperties: { '`;globalThis.injected=true//': {} },
        dependentRequired: { [name]: [name] },
      },
    )
    expect(await checkSchema(schema)).toBeUndefined()
    expect(await check(schema, { [name]: name })).toBeUndefined()
    expect(await check(schema, { [name]: 1 })).toContain('must be string')
    expect(await check({ type: 'object', $defs: {}, $ref: `#/${name}` }, {})).toContain('parameters are wrong')
    expect(globalThis).not.toHaveProperty('injected')
  })
})

describe("the service's own schemas", () => {
  const own = object({ name: { type: 'string' }, size: { type: 'integer' } }, { required: ['name'] })

  it('are checked in the same words', async () => {
    expect(await check(own, { name: 'ada' }, true)).toBeUndefined()
    const args = { size: 'large' }
    expect(await check(own, args, true)).toBe(await check({ ...own }, args))
  })

  it('give verdicts in the order of the calls, also beside foreign schemas', async () => {
    const foreign = object({ x: { type: 'string' } })
    const verdicts = await checkArguments(threads, [
      { schema: foreign, args: { x: 1 }, isTrusted: false },
      { schema: own, args: {}, isTrusted: true },
      { schema: foreign, args: { x: 'a' }, isTrusted: false },
      { schema: own, args: { name: 'a' }, isTrusted: true },
      { schema: { type: 'array' }, args: {}, isTrusted: false },
    ])
    expect(verdicts).toEqual([
      'The arguments are not what the tool takes: x must be string.',
      'The arguments are not what the tool takes: name is required.',
      undefined,
      undefined,
      'The tool cannot be called, its parameters are wrong: type must be "object" at the top.',
    ])
    expect(await checkArguments(threads, [])).toEqual([])
    expect(await checkSchemas(threads, [])).toEqual([])
  })
})

describe('schemas and arguments made to take time', () => {
  const LATE = 'The arguments could not be checked in time; pass simpler ones.'
  const LARGE = 'The arguments are too large or too deeply nested to be checked; pass smaller ones.'
  const evil = object({ x: { pattern: '^(a+)+$' } })
  const evilCalls = (count: number) =>
    Array.from({ length: count }, () => ({ schema: evil, args: { x: `${'a'.repeat(800)}!` }, isTrusted: false }))

  const doubling = (keyword: string, leaf: object) => {
    const twice = (index: number) => ({ [keyword]: [{ $ref: `#/$defs/a${index}` }, { $ref: `#/$defs/a${index}` }] })
    const steps = Array.from({ length: 100 }, (_, index) => [`a${index + 1}`, twice(index)])
    return object({ x: { $ref: '#/$defs/a100' } }, { $defs: { a0: leaf, ...Object.fromEntries(steps) } })
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
  const unevaluated = {
    ...object({ x: { $ref: '#/$defs/a100/anyOf/0' } }, doubling('anyOf', { properties: { a: {} } })),
    unevaluatedProperties: false,
  }
  const objects = (count: number) => Array.from({ length: count }, (_, index) => ({ index }))
  /**
   * Limit of the CPU time. Unchecked, each of these takes minutes to years. Before they are stopped, the threads and
   * their garbage collection use some seconds, and several times that on a slow machine.
   */
  const MAX_CPU_MS = 60_000
  const MAX_BUSY_MS = 5000
  /** Returns the CPU time of the whole process, so that other load on the machine does not count. */
  const cpuMs = (): number => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
  /** Runs `work`, expecting the event loop to stay free and a later check to succeed. */
  async function whileFree<T>(work: () => Promise<T>): Promise<T> {
    await check(object({}), {})
    const startedMs = cpuMs()
    const loop = watchEventLoop()
    const result = await work()
    expect(loop.stop().busyMs).toBeLessThan(MAX_BUSY_MS)
    expect(cpuMs() - startedMs).toBeLessThan(MAX_CPU_MS)
    expect(await check(object({ a: { type: 'string' } }), { a: 1 })).toContain('a must be string')
    return result
  }

  /** Each failure is kept in memory, so a fast machine runs out of memory before it runs out of time. */
  const LATE_OR_LARGE = /could not be checked in time|too large or too deeply nested/

  it.each<[string, Schema, Arguments]>([
    ['definitions that double, each allowed', doubling('allOf', { type: 'string' }), { x: 'a' }],
    ['a recursion that doubles over deep data', tree(2), nested(60)],
    ['a pattern that goes back', evil, { x: `${'a'.repeat(800)}!` }],
    ['a large pattern', object({ x: { pattern: '^(a?){1000}$' } }), { x: `${'a'.repeat(800)}!` }],
    ['a pattern of names', { patternProperties: { '^(a|a)*$': {} } }, { [`${'a'.repeat(60)}!`]: 1 }],
    ['unevaluatedProperties', unevaluated, { x: { a: 1, b: 2 } }],
    ['uniqueItems', object({ x: { uniqueItems: true } }), { x: objects(50_000) }],
    ['a huge enum', object({ x: { items: { enum: objects(900) } } }), { x: objects(60_000) }],
  ])('leave the event loop free and are stopped in time: %s', async (_, schema, args) => {
    expect(await whileFree(() => checkBriefly(schema, args))).toBe(LATE)
  })

  it.each<[string, Schema, Arguments, string | RegExp]>([
    ['definitions that double, each refused', doubling('anyOf', { type: 'number' }), { x: 'a' }, LATE_OR_LARGE],
    ['a recursion over data that is deeper than the stack', tree(1), nested(200_000), LARGE],
    ['a schema that is only itself', { $ref: '#' }, {}, LARGE],
    [
      'a list that is all wrong',
      object({ x: { items: { type: 'string' } } }),
      { x: Array(300_000).fill(1) },
      'x.0 must',
    ],
  ])('leave the event loop free and end in time: %s', async (_, schema, args, sentence) => {
    expect(await whileFree(() => check(schema, args))).toMatch(sentence)
  })

  it("leave the event loop free also when the schema is the service's own", async () => {
    const own = object({ x: { items: object({}, { required: ['a', 'b', 'c'] }) } })
    expect(await whileFree(() => check(own, { x: Array(100_000).fill({}) }, true))).toMatch(/x\.0\.a is|in time/)
  })

  it('have one time limit for all calls of an answer; what was checked by then counts', async () => {
    const good = { schema: object({ x: { maxLength: 2 } }), args: { x: 'a' }, isTrusted: false }
    const bad = { ...good, args: { x: 'abc' } }
    const verdicts = await whileFree(() => checkArguments(threads, [good, bad, ...evilCalls(128), good]))
    expect(verdicts.slice(0, 2)).toEqual([undefined, expect.stringContaining('x must NOT have more than 2')])
    expect(verdicts.slice(2)).toEqual(Array(129).fill(LATE))
  })

  it('fail alone when they use all memory', async () => {
    const copied = { anyOf: Array(300).fill({ type: 'null' }) }
    const schema = object({ x: { items: { items: copied } } })
    const args = { x: Array(150).fill(Array(3000).fill(1)) }
    const verdict = await whileFree(() => check(schema, args))
    expect([LATE, LARGE]).toContain(verdict)
  })

  it('delay others by a bounded time', async () => {
    const hostile = Array.from({ length: 4 }, () => checkArguments(threads, evilCalls(128), { timeLimitMs: 300 }))
    const startedMs = cpuMs()
    expect(await check(object({ a: {} }), { a: 1 })).toBeUndefined()
    // There are two threads, each with two batches.
    expect(cpuMs() - startedMs).toBeLessThan(MAX_CPU_MS)
    expect((await Promise.all(hostile)).flat()).toEqual(Array(4 * 128).fill(LATE))
  })

  it('stop when the turn is cancelled', async () => {
    const caller = new AbortController()
    const checking = [1, 2, 3, 4].map(() => checkArguments(threads, evilCalls(1), { signal: caller.signal }))
    setTimeout(() => caller.abort(new Error('cancelled')), 100)
    const ends = await Promise.allSettled(checking)
    expect(ends.map((end) => end.status === 'rejected' && end.reason.message)).toEqual(Array(4).fill('cancelled'))
    expect(await check(object({}), {})).toBeUndefined()
  })

  it('are refused on write when they take too long', async () => {
    const chain = { ...nest(50), allOf: Array.from({ length: 50 }, (_, at) => ({ $ref: `#${'/not'.repeat(at + 1)}` })) }
    const fields = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`f${index}`, { type: 'string' }]))
    const costly = JSON.parse(JSON.stringify(chain).replace('{"not":{}}', JSON.stringify({ not: object(fields) })))
    const problems = await whileFree(() => checkSchemas(threads, [object({}), ...Array(50).fill(costly)]))
    expect([problems[0], problems.at(-1)]).toEqual([undefined, 'it takes too long to check'])
  })

  it('may be fifty large ones at once', async () => {
    const fields = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`f${index}`, { type: 'string' }]))
    const schemas = Array.from({ length: 50 }, (_, index) => object({ ...fields, [`t${index}`]: {} }))
    expect(await whileFree(() => checkSchemas(threads, schemas))).toEqual(Array(50).fill(undefined))
  })
})
