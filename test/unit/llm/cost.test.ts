import { addCosts, costOf } from '../../../domain/models/llm/cost.ts'
import { findProfile } from '../../../domain/models/llm/profiles/find.ts'
import type { Profile } from '../../../domain/models/llm/profiles/schema.ts'

const base = findProfile('llmsim', 'llmsim-default')
const withCost = (cost: Profile['cost']): Profile | undefined => base && { ...base, cost }
const usage = (input: number, output: number, read?: number | null, write?: number | null) => ({
  input_tokens: input,
  output_tokens: output,
  cache_read_tokens: read,
  cache_creation_tokens: write,
})

const claude = { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 }
const tiered = {
  input: 1.25,
  output: 10,
  cache_read: 0.125,
  tiers: [
    { above_input_tokens: 500_000, input: 5, output: 20, cache_read: 0.5 },
    { above_input_tokens: 200_000, input: 2.5, output: 15, cache_read: 0.25 },
  ],
}

describe('the cost of a call', () => {
  it.each([
    ['nothing', claude, usage(0, 0), '0'],
    ['one token of input', claude, usage(1, 0), '0.000003'],
    ['a million tokens of input', claude, usage(1_000_000, 0), '3'],
    ['input and output', claude, usage(1000, 200), '0.006'],
    ['input partly read from the cache', claude, usage(1000, 0, 900), '0.00057'],
    ['input partly written to the cache', claude, usage(1000, 0, 0, 900), '0.003675'],
    ['input read, written and fresh', claude, usage(1000, 10, 500, 300), '0.002025'],
    ['cache counts that are null', claude, usage(1000, 0, null, null), '0.003'],
    ['a cache without prices of its own', { input: 2, output: 8 }, usage(1000, 0, 400, 100), '0.002'],
    ['a cache that is free', { input: 2, output: 8, cache_read: 0 }, usage(1000, 0, 1000), '0'],
    ['a price that floats get wrong (0.1 * 3)', { input: 0.1, output: 0 }, usage(3, 0), '0.0000003'],
    ['a sum that floats get wrong (0.1 + 0.2)', { input: 0.1, output: 0.2 }, usage(1_000_000, 1_000_000), '0.3'],
    ['a fine price (0.15 * 7)', { input: 0.15, output: 0 }, usage(7, 0), '0.00000105'],
    ['a price that a float puts below itself (1.001)', { input: 1.001, output: 0 }, usage(1, 0), '0.000001001'],
    ['the finest price', { input: 0.000001, output: 0 }, usage(1, 0), '0.000000000001'],
    ['more digits than a float has', { input: 1.234567, output: 0 }, usage(9_007_199_254, 0), '11119.990961413018'],
    ['an input as long as the first tier allows', tiered, usage(200_000, 1000), '0.26'],
    ['an input in the second tier, as a whole', tiered, usage(200_001, 1000), '0.5150025'],
    ['cached input in the second tier', tiered, usage(300_000, 0, 300_000), '0.075'],
    ['an input in the highest tier', tiered, usage(500_001, 0), '2.500005'],
  ])('of %s is exact', (_, cost, tokens, expected) => {
    expect(costOf(withCost(cost), tokens)).toBe(expected)
  })

  it.each([
    ['more tokens read from the cache than there was input', usage(100, 0, 1000), '0.0003'],
    ['more tokens written to the cache than there was input', usage(0, 0, 0, 1000), '0.00375'],
    ['counts below zero', usage(-5, -5, -5, -5), '0'],
    ['counts that are no numbers', usage(Number.NaN, Number.POSITIVE_INFINITY), '0'],
    ['fractions of tokens', usage(1.9, 0), '0.000003'],
  ])('is never negative with %s', (_, tokens, expected) => {
    expect(costOf(withCost(claude), tokens)).toBe(expected)
  })

  it('is unknown without a profile or a price', () => {
    expect(costOf(undefined, usage(1, 1))).toBeNull()
    expect(costOf(withCost(undefined), usage(1, 1))).toBeNull()
  })
})

describe('the sum of two costs', () => {
  it.each([
    ['0', '0', '0'],
    ['0.1', '0.2', '0.3'],
    ['1.5', '0.5', '2'],
    ['0.000000000001', '123456789012', '123456789012.000000000001'],
    ['0.10', '0', '0.1'],
    ['9007199254740993', '0.000000000000001', '9007199254740993.000000000000001'],
  ])('of %s and %s is exact', (a, b, expected) => {
    expect(addCosts(a, b)).toBe(expected)
    expect(addCosts(b, a)).toBe(expected)
  })

  it('is unknown when one of them is', () => {
    expect(addCosts(null, '1')).toBeNull()
    expect(addCosts('1', null)).toBeNull()
  })

  it.each(['', '-1', '1e-7', 'NaN', '1.', '.5'])('refuses %j, which is not a decimal', (text) => {
    expect(() => addCosts(text, '1')).toThrow('A cost is a decimal')
  })
})
