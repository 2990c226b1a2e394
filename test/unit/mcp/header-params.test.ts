import { readHeaderParams } from '../../../domain/tools/mcp/protocol/header-params.ts'

const region = (declared: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': declared })
const object = (properties: Record<string, unknown>, more = {}) => ({ type: 'object', properties, ...more })

describe('arguments in headers', () => {
  it.each<[string, Record<string, unknown>, string]>([
    ['no schema of a property', { type: 'object', properties: 'none' }, 'none'],
    ['none that is declared', object({ a: { type: 'string' } }), 'none'],
    ['a value of that name', object({ a: { type: 'string', default: { 'x-mcp-header': '' } } }), 'none'],
    ['a text', object({ a: region('Region') }), 'some'],
    ['a whole number and a boolean', object({ a: region('A', 'integer'), b: region('B', 'boolean') }), 'some'],
    ['one within an object', object({ a: object({ b: region('Region') }) }), 'some'],
    ['an empty name', object({ a: region('') }), 'invalid'],
    ['a name that is not a text', object({ a: region(1) }), 'invalid'],
    ['a name with a space', object({ a: region('My Region') }), 'invalid'],
    ['a name with a line break', object({ a: region('A\r\nHost: b') }), 'invalid'],
    ['a number', object({ a: region('A', 'number') }), 'invalid'],
    ['an object', object({ a: region('A', 'object') }), 'invalid'],
    ['several types', object({ a: region('A', ['string']) }), 'invalid'],
    ['the same name twice', object({ a: region('A'), b: region('a') }), 'invalid'],
    ['the whole', { ...object({}), 'x-mcp-header': 'A' }, 'invalid'],
    ['an item', object({ a: { type: 'array', items: region('A') } }), 'invalid'],
    ['an alternative', object({ a: { anyOf: [region('A')] } }), 'invalid'],
    ['a definition', object({}, { $defs: { a: region('A') } }), 'invalid'],
    ['a property of an alternative', object({}, { oneOf: [object({ a: region('A') })] }), 'invalid'],
  ])('are read from a schema: %s', (_, schema, expected) => {
    expect(readHeaderParams(schema)).toBe(expected)
  })
})
