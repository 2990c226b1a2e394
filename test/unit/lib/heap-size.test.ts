import { execFileSync } from 'node:child_process'
import { estimateHeapBytes } from '../../../lib/heap-size.ts'

const many = (count: number, item: (index: number) => string): string =>
  `[${Array.from({ length: count }, (_, index) => item(index)).join(',')}]`

/** Prints the bytes that the document on the standard input takes as a value. */
const MEASURE = `
  const live = () => { gc(); const { heapUsed, external } = process.memoryUsage(); return heapUsed + external }
  const json = require('fs').readFileSync(0, 'utf8')
  const before = live()
  globalThis.kept = JSON.parse(json)
  console.log(live() - before)`

/** Returns the bytes that V8 takes for a document, in a process that does nothing else. */
const measure = (json: string): number =>
  Number(execFileSync(process.execPath, ['--expose-gc', '-e', MEASURE], { input: json, timeout: 60_000 }))

describe('the memory of a value', () => {
  it.each([
    ['empty objects', many(50_000, () => '{}')],
    ['objects with a number', many(40_000, () => '{"a":1.5}')],
    ['objects with a name of their own', many(20_000, (index) => `{"k${index}":1}`)],
    ['numbers', many(300_000, () => '1.5')],
    ['texts', many(40_000, (index) => `"text ${index}"`)],
    ['a long text', `"${'a'.repeat(3_000_000)}"`],
    ['a long text of two bytes a character', `"${'я'.repeat(1_500_000)}"`],
  ])('is estimated at about half to twice of what V8 takes for %s', (_, json) => {
    const ratio = estimateHeapBytes(JSON.parse(json)) / measure(json)
    expect(ratio).toBeGreaterThan(0.4)
    expect(ratio).toBeLessThan(2.5)
  })

  it('is estimated for any depth', () => {
    const depth = 5_000
    expect(estimateHeapBytes(JSON.parse('['.repeat(depth) + ']'.repeat(depth)))).toBeGreaterThan(64 * depth)
  })
})
