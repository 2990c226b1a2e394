import { estimateHeapBytes } from '../../../lib/heap-size.ts'
import { leastLiveBytes } from '../../support/heap.ts'

const many = (count: number, item: (index: number) => string): string =>
  `[${Array.from({ length: count }, (_, index) => item(index)).join(',')}]`

describe('the memory of a value', () => {
  it.each([
    ['empty objects', () => many(400_000, () => '{}')],
    ['objects with a number', () => many(200_000, () => '{"a":1.5}')],
    ['objects with a name of their own', () => many(100_000, (index) => `{"k${index}":1}`)],
    ['numbers', () => many(2_000_000, () => '1.5')],
    ['texts', () => many(200_000, (index) => `"text ${index}"`)],
    ['a long text', () => `"${'a'.repeat(8_000_000)}"`],
    ['a long text of two bytes a character', () => `"${'я'.repeat(4_000_000)}"`],
  ])('is estimated at about half to twice of what V8 takes for %s', async (_, toJson) => {
    const json = toJson()
    const before = await leastLiveBytes()
    const value: unknown = JSON.parse(json)
    const bytes = (await leastLiveBytes()) - before
    const ratio = estimateHeapBytes(value) / bytes
    expect(ratio).toBeGreaterThan(0.4)
    expect(ratio).toBeLessThan(2.5)
  })

  it('is estimated for any depth', () => {
    const depth = 5_000
    expect(estimateHeapBytes(JSON.parse('['.repeat(depth) + ']'.repeat(depth)))).toBeGreaterThan(64 * depth)
  })
})
