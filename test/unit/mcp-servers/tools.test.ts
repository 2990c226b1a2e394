import type { ListedTool } from '../../../domain/tools/mcp/protocol/client.ts'
import { isWithinDepth } from '../../../domain/tools/mcp/protocol/json-size.ts'
import { areEqual, fingerprintOf } from '../../../domain/tools/mcp-servers/tools.ts'
import { listedTool } from '../../support/mcp-server.ts'

describe("a tool's fingerprint", () => {
  it.each<[what: string, more: Partial<ListedTool>]>([
    ['name', { name: 'other' }],
    ['title', { title: 'Other' }],
    ['description', { description: 'Does otherwise.' }],
    ['schema', { inputSchema: { type: 'object', properties: { text: { type: 'number' } } } }],
    ['hint that it reads only', { isReadOnly: true }],
    ['hint that it may be repeated', { isIdempotent: true }],
  ])('changes with its %s', (_, more) => {
    expect(fingerprintOf(listedTool('one', more))).not.toBe(fingerprintOf(listedTool('one')))
  })

  it('does not depend on the order of fields, but on the order of lists', () => {
    const of = (inputSchema: object) => fingerprintOf(listedTool('one', { inputSchema: { ...inputSchema } }))
    expect(of({ type: 'object', a: { b: 1, c: [1, 2] } })).toBe(of({ a: { c: [1, 2], b: 1 }, type: 'object' }))
    expect(of({ a: [1, 2] })).not.toBe(of({ a: [2, 1] }))
  })
})

it.each<[some: object, others: object, isEqual: boolean]>([
  [{}, {}, true],
  [{ a: '1' }, { a: '1' }, true],
  [{ a: '1', b: '2' }, { b: '2', a: '1' }, true],
  [{ a: '1' }, { a: '2' }, false],
  [{ a: '1' }, { a: '1', b: '2' }, false],
  [{ a: '1', b: '2' }, { a: '1' }, false],
  [{ constructor: '1' }, {}, false],
  [JSON.parse('{"__proto__":"1"}'), {}, false],
])('the fingerprints %j and %j are equal: %s', (some, others, isEqual) => {
  const mapOf = (fingerprints: object) => new Map(Object.entries(fingerprints))
  expect(areEqual(mapOf(some), mapOf(others))).toBe(isEqual)
})

it('a value is measured by its levels, however deep it is', () => {
  let deep: unknown = 1
  for (let level = 0; level < 100_000; level++) deep = [deep]
  expect([!isWithinDepth(1, 0), !isWithinDepth([], 0), !isWithinDepth({ a: [1] }, 2)]).toEqual([false, true, false])
  expect([!isWithinDepth({ a: [1] }, 1), !isWithinDepth(deep, 100)]).toEqual([true, true])
})
