import { redactCall, redactResult } from '../../../domain/tools/call-secrets/redact-call.ts'
import { redactError, redactText } from '../../../domain/tools/call-secrets/redact-text.ts'
import { PostgresUnavailable, unavailability } from '../../../platform/unavailable.ts'
import { createVault } from '../../support/vault.ts'

const [keep] = createVault().capability.tools
if (keep === undefined) throw new Error('the vault has no tool')
const callOf = (args: Record<string, unknown>) => ({ id: 'one', name: 'keep', arguments: args })

describe('the secrets in a call', () => {
  it.each<[string, Record<string, unknown>, Record<string, unknown>, Record<string, unknown>]>([
    ['marked', { name: 'a', value: 'b' }, { name: 'a', value: '[secret]' }, { value: 'b' }],
    ['of any type', { value: { a: [1] } }, { value: '[secret]' }, { value: { a: [1] } }],
    ['empty', { value: '' }, { value: '[secret]' }, { value: '' }],
    ['an object in the wrong place', { name: { a: 'b' } }, { name: '[secret]' }, { name: { a: 'b' } }],
    ['a list in the wrong place', { name: ['b'] }, { name: '[secret]' }, { name: ['b'] }],
    ['not declared', { vaule: 'b', name: 'a' }, { vaule: '[secret]', name: 'a' }, { vaule: 'b' }],
    [
      'named like the prototype',
      JSON.parse('{"__proto__":1}'),
      JSON.parse('{"__proto__":"[secret]"}'),
      JSON.parse('{"__proto__":1}'),
    ],
  ])('are taken out of it, and can be put back: %s', (_name, args, masked, hidden) => {
    const call = redactCall(keep, callOf(args))
    expect(JSON.stringify(call.arguments)).toBe(JSON.stringify(masked))
    expect(JSON.stringify(call.hidden)).toBe(JSON.stringify(hidden))
    expect(JSON.stringify({ ...call.arguments, ...call.hidden })).toBe(JSON.stringify(args))
  })

  it('are all arguments when the tool is unknown', () => {
    const args = { operation: 'set', value: 'b' }
    const masked = { operation: '[secret]', value: '[secret]' }
    expect(redactCall(undefined, callOf(args))).toEqual({ ...callOf(masked), hidden: args })
    expect(redactCall(undefined, { ...callOf({}), argumentsError: 'not b' }).argumentsError).not.toMatch(/not b/)
  })

  it('are not kept beyond 1 MiB of JSON', () => {
    const value = 'é'.repeat(512 * 1024 - 6)
    expect(redactCall(keep, callOf({ value }))).toMatchObject({ hidden: { value } })
    const { hidden, ...call } = redactCall(keep, callOf({ value: `${value}é` }))
    expect(hidden).toBeUndefined()
    expect(call).toEqual({ ...callOf({ value: '[secret]' }), argumentsError: expect.stringMatching(/1 MiB/) })
  })

  it('do not exist without a mark, or without the field', () => {
    const { secrets: _marks, ...unmarked } = keep
    for (const [tool, args] of [
      [keep, { name: 'a' }],
      [unmarked, { value: 'b', other: 1 }],
    ] as const) {
      const call = callOf(args)
      expect(redactCall(tool, call)).toEqual(call)
    }
    for (const text of ['{"name":"a"}', '["value"]', '"value"', 'null']) {
      expect(redactResult(keep, text)).toEqual({ value: text })
    }
    expect(redactResult(unmarked, '{"value":1}')).toEqual({ value: '{"value":1}' })
  })
})

describe('a text about a call with secrets', () => {
  it.each<[string, unknown, string, string]>([
    ['a text', 'hunter2', 'not hunter2, hunter2!', 'not [secret], [secret]!'],
    ['a pattern', '.*(a+)+$', 'it was .*(a+)+$, not xaa', 'it was [secret], not xaa'],
    ['a text in JSON', 'a "b" \\', String.raw`got {"value":"a \"b\" \\"}`, 'got {"value":"[secret]"}'],
    [
      'a text in JSON in JSON',
      'a "b"',
      String.raw`got "{\"value\":\"a \\\"b\\\"\"}"`,
      String.raw`got "{\"value\":\"[secret]\"}"`,
    ],
    ['a number', 4711, 'over 4711', 'over [secret]'],
    [
      'what is in it',
      { user: ['anna', { pass: 12345 }] },
      'anna has 12345 as pass',
      '[secret] has [secret] as [secret]',
    ],
    ['a secret that contains another', ['abc', 'abcdef'], 'abcdef and abc', '[secret] and [secret]'],
    ['two that overlap', ['abcd', 'cdef'], 'xabcdefx cdef', 'x[secret]x [secret]'],
    ['two that touch', ['abcd', 'efgh'], 'abcdefgh', '[secret]'],
    ['a part of the mask', 'secret', 'a secret is secret', 'a [secret] is [secret]'],
    ['a text in a page', 'a/b=="c', 'is a&#x2F;b&#61;&equals;&quot;c, a&#47b=="c!', 'is [secret], [secret]!'],
    [
      'a text as other languages write JSON',
      '</b&c>',
      String.raw`<\/b&c>, \u003c/b\u0026c\u003E`,
      '[secret], [secret]',
    ],
    ['a text in an address', 'a b/c', '?q=a%20b%2fc&p=1', '?q=[secret]&p=1'],
    ['a short one, which stays', 'is', 'this is it', 'this is it'],
    ['nothing', '', 'this is it', 'this is it'],
  ])('does not repeat %s', (_name, value, text, expected) => {
    expect(redactText(text, { value })).toBe(expected)
  })

  it.each([64 * 1024, 1024 * 1024])('does not repeat a value of %i characters', (length) => {
    const value = 'say "hi" \\ .*(a+)+$ \n'.repeat(length / 16).slice(0, length)
    const text = `no ${value}, ${JSON.stringify({ value })}, ${JSON.stringify(JSON.stringify(value))}`
    expect(redactText(text, { value, other: 'hunter2' })).toBe('no [secret], {"value":"[secret]"}, "\\"[secret]\\""')
    expect(redactText('hunter2 is short', { value, other: 'hunter2' })).toBe('[secret] is short')
  })

  it('is searched for many values at once, and left out when that would take long', () => {
    const value = Array.from({ length: 200_000 }, (_, index) => index + 10_000)
    expect(redactText('it was 10042', { value })).toBe('it was [secret]')
    expect(redactText('it was 10042'.repeat(100), { value })).toMatch(/is left out/)
  })

  it('is left out when it has more signs to decode than can be searched soon', () => {
    const [many, more] = ['%41'.repeat(600_000), '%41'.repeat(600_001)]
    expect(redactText(`${many}hunter2`, { value: 'hunter2' })).toBe(`${many}[secret]`)
    expect(redactText(more, { value: 'hunter2' })).toMatch(/is left out/)
    expect(redactText(more, { value: 'is' })).toBe(more)
  })

  it('stays the same without secrets', () => {
    expect(redactText('value', {})).toBe('value')
    const error = new Error('value')
    expect(redactError(error, undefined)).toBe(error)
  })

  it('is all that a log is given of an error', () => {
    const error = Object.assign(new TypeError('no hunter2'), { args: 'hunter2', cause: new Error('hunter2') })
    const hidden = redactError(error, { value: 'hunter2' }) as Error
    expect(hidden).toMatchObject({ name: 'TypeError', message: 'no [secret]' })
    expect(hidden.stack).toMatch(/no \[secret\]\n.*redact\.test\.ts/)
    expect(hidden).not.toHaveProperty('args')
    expect(hidden).not.toHaveProperty('cause')
    expect(redactError('hunter2', { value: 'hunter2' })).toMatchObject({ message: '[secret]' })
  })

  it.each<[string, Error]>([
    ['Postgres', new PostgresUnavailable('overloaded', new Error('no hunter2'))],
    ['the network', Object.assign(new Error('no hunter2'), { code: 'ECONNREFUSED' })],
    ['a time limit, whose class has getters', new DOMException('no hunter2', 'TimeoutError')],
  ])('still tells an outage of %s', (_name, error) => {
    const hidden = redactError(error, { value: 'hunter2' }) as Error
    expect(hidden).toBeInstanceOf(Object.getPrototypeOf(error).constructor)
    expect([hidden.name, hidden.message]).toEqual([error.name, 'no [secret]'])
    expect(unavailability(hidden)).toBe(unavailability(error))
  })
})
