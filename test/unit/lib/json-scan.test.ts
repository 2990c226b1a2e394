import { createJsonScan } from '../../../lib/json-scan.ts'

/** Returns the number of parts that the scan counts, in pieces of `pieceBytes`. */
function countParts(text: string, pieceBytes = text.length): number {
  const isTaken = (maxParts: number) => {
    const scan = createJsonScan({ maxParts, maxDepth: 64 })
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      if (scan.add(bytes.subarray(at, at + pieceBytes)) !== undefined) return false
    }
    return true
  }
  let parts = 1
  while (!isTaken(parts)) parts++
  return parts
}

describe('a scan of JSON', () => {
  it.each<[string, number]>([
    ['1', 1],
    ['[]', 2],
    ['[1,2,3]', 4],
    ['{"a":1,"b":[2]}', 6],
    ['[",:[{", "\\",", "\\\\"]', 4],
    [`["${'x'.repeat(3000)}\\",[[${'é'.repeat(2000)}",1]`, 3],
    [`["${'x'.repeat(70_000)}\\"${'y'.repeat(70_000)}",[1]]`, 4],
  ])('counts values and keys outside strings, in pieces of any length: %.40s', (text, parts) => {
    for (const pieceBytes of [1, 2, 3, 7, 1000, 10_000]) expect(countParts(text, pieceBytes)).toBe(parts)
  })

  it('finds a nesting that is too deep before the end', () => {
    const scan = createJsonScan({ maxParts: 1000, maxDepth: 64 })
    expect(scan.add(Buffer.from('[{},'.repeat(63)))).toBeUndefined()
    expect(scan.add(Buffer.from('[{"'))).toBe('depth')
  })
})
