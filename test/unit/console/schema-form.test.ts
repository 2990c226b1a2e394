import { fieldsOf } from '../../../console/parts/schema-form.ts'

const of = (property: object) => fieldsOf({ type: 'object', properties: { it: property } })?.[0]

it.each<[string, object, object]>([
  [
    'a text',
    { type: 'string', title: 'Name', description: 'Your name' },
    { kind: 'text', label: 'Name', hint: 'Your name' },
  ],
  ['a number', { type: 'integer' }, { kind: 'number', label: 'it' }],
  ['a number or null', { type: ['number', 'null'] }, { kind: 'number' }],
  [
    'a whole number within limits',
    { type: 'integer', minimum: 0.5, maximum: 9 },
    { limits: { step: 1, min: 1, max: 9 } },
  ],
  ['an address', { type: 'string', format: 'email' }, { limits: { type: 'email' } }],
  [
    'limits that a browser does not know',
    { type: 'string', format: 'constructor', maxLength: 5, pattern: '(a+)+$' },
    { kind: 'text', limits: {} },
  ],
  ['yes or no', { type: 'boolean' }, { kind: 'boolean', isRequired: false }],
  [
    'a choice',
    { enum: ['a', 'b'], enumNames: ['A'] },
    {
      kind: 'choice',
      options: [
        { value: 'a', label: 'A' },
        { value: 'b', label: 'b' },
      ],
    },
  ],
  [
    'a choice with titles',
    { oneOf: [{ const: 'a', title: 'A' }] },
    { kind: 'choice', options: [{ value: 'a', label: 'A' }] },
  ],
  ['several of a choice', { type: 'array', items: { type: 'string', enum: ['a'] } }, { kind: 'choices' }],
  ['several texts', { type: 'array', items: { type: 'string' } }, { kind: 'lines' }],
  ['several objects as JSON', { type: 'array', items: { type: 'object' } }, { kind: 'json' }],
  ['an object as JSON', { type: 'object', properties: { x: {} } }, { kind: 'json' }],
  ['a choice of numbers as JSON', { enum: [1, 2] }, { kind: 'json' }],
  ['several types as JSON', { type: ['string', 'number'] }, { kind: 'json' }],
  ['a reference as JSON', { $ref: '#/$defs/x' }, { kind: 'json' }],
  ['true, the schema of everything, as JSON', true as unknown as object, { kind: 'json' }],
])('shows %s', (_, property, field) => {
  expect(of(property)).toMatchObject(field)
})

it('names what is required', () => {
  const properties = { a: { type: 'string' }, b: { type: 'string' } }
  const fields = fieldsOf({ type: 'object', properties, required: ['b'] })
  expect(fields?.map(({ name, isRequired }) => [name, isRequired])).toEqual([
    ['a', false],
    ['b', true],
  ])
})

it.each([[null], [undefined], ['x'], [{}], [{ type: 'object' }], [{ properties: null }], [{ properties: {} }], [true]])(
  'has no form for %j',
  (schema) => {
    expect(fieldsOf(schema)).toBeNull()
  },
)

it('tolerates a malformed schema', () => {
  expect(
    fieldsOf({ properties: { a: null, b: 5, c: [], d: { type: 7, oneOf: 'x', items: null } }, required: 'a' }),
  ).toMatchObject(['a', 'b', 'c', 'd'].map((name) => ({ name, kind: 'json' })))
})
