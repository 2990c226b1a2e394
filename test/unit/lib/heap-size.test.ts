import { estimateHeapBytes } from '../../../lib/heap-size.ts'
import { leastLiveBytes } from '../../support/heap.ts'

const many = (count: number, item: (index: number) => string): string =>
  `[${Array.from({ length: count }, (_, index) => item(index)).join(',')}]`

describe('the memory of a value', () => {
  it.each([
    ['empty objects', () => many(50_000, () => '{}')],
    ['objects with a number', () => many(40_000, () => '{"a":1.5}')],
    ['objects with a name of their own', () => many(20_000, (index) => `{"k${index}":1}`)],
    ['numbers', () => many(300_000, () => '1.5')],
    ['texts', () => many(40_000, (index) => `"text ${index}"`)],
    ['a long text', () => `"${'a'.repeat(3_000_000)}"`],
    ['a long text of two bytes a character', () => `"${'я'.repeat(1_500_000)}"`],
  ])('is estimated at about half to twice of what V8 takes for %s', async (_, toJson) => {
    const json = toJson()
    // In a process that has run other files, their garbage may be collected meanwhile.
    let ratio = Number.NaN
    for (let tries = 0; tries < 3 && !(ratio > 0.4 && ratio < 2.5); tries++) {
      const before = await leastLiveBytes()
      const value: unknown = JSON.parse(json)
      const bytes = (await leastLiveBytes()) - before
      ratio = estimateHeapBytes(value) / bytes
    }
    expect(ratio).toBeGreaterThan(0.4)
    expect(ratio).toBeLessThan(2.5)
  })

  it('is estimated for any depth', () => {
    const depth = 5_000
    expect(estimateHeapBytes(JSON.parse('['.repeat(depth) + ']'.repeat(depth)))).toBeGreaterThan(64 * depth)
  })
})
