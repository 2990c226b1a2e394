import { createEventReader } from '../../../domain/models/llm/providers/streams/events.ts'

/** Reads the data of a stream whose bytes arrive in pieces of `size`. */
function read(stream: string, size = Number.POSITIVE_INFINITY): string[] {
  const reader = createEventReader()
  const bytes = Buffer.from(stream)
  const events: string[] = []
  try {
    for (let at = 0; at < bytes.length; at += size) events.push(...reader.read(bytes.subarray(at, at + size)))
    return [...events, ...reader.end()]
  } finally {
    reader.close()
  }
}

/** Does the least that has to be done with each piece. */
function decodePieces(stream: string, size: number): string {
  const decoder = new TextDecoder()
  const bytes = Buffer.from(stream)
  const pieces: string[] = []
  for (let at = 0; at < bytes.length; at += size)
    pieces.push(decoder.decode(bytes.subarray(at, at + size), { stream: true }))
  return pieces.join('')
}

describe('a stream of events', () => {
  it.each(['\n', '\r', '\r\n'])('is read however its bytes arrive, with the end of line %j', (end) => {
    const lines = [
      '\ufeff: hello',
      '',
      'event: x',
      'id: 1',
      'data: {"é😀":',
      'data:"\u2028"}',
      '',
      'data: [DONE]',
      '',
      '',
    ]
    for (const size of [1, 2, 3, 7, 64, 100_000]) {
      expect(read(lines.join(end), size)).toEqual(['{"é😀":\n"\u2028"}', '[DONE]'])
    }
  })

  it.each([
    ['a line without its end', 'data: {"a', []],
    ['an event without its end', 'data: {}\n', ['{}']],
    ['other fields only', 'event: ping\nretry: 10\n\n', []],
    ['a field without a colon, and one of a longer name', 'data\n\ndatax: 1\n\n', ['']],
    ['blank lines', '\n\n\r\n\r', []],
    ['an empty datum', 'data:\n\n', ['']],
    ['nothing', '', []],
  ])('may have %s', (_what, stream, events) => {
    for (const size of [1, 100]) expect(read(stream, size)).toEqual(events)
  })

  it('takes time in proportion to its length, in pieces as small as they come', () => {
    const stream = `data: ${'x'.repeat(400_000)}\n\n`
    const quickest = (work: () => unknown) => {
      const times = Array.from({ length: 5 }, () => {
        const before = process.cpuUsage()
        work()
        return process.cpuUsage(before).user
      })
      return Math.min(...times)
    }
    // It would be thousands of times as much if each piece had all before it read again.
    expect(quickest(() => read(stream, 16)) / quickest(() => decodePieces(stream, 16))).toBeLessThan(100)
  })
})

describe('a line with thousands of calls', () => {
  const call = (index: number) => ({
    index,
    id: `c${index}`,
    type: 'function',
    function: { name: 'echo', arguments: '{}' },
  })
  const chunkOf = (count: number) =>
    JSON.stringify({ choices: [{ delta: { tool_calls: Array.from({ length: count }, (_, index) => call(index)) } }] })

  it('is refused before it is parsed', () => {
    const tooMany = expect.objectContaining({ code: 'too_many_tool_calls', retryable: false })
    expect(() => read(`data: ${chunkOf(30_000)}\n\n`, 10_000)).toThrow(tooMany)
  })

  it('is told from one whose text is about calls', () => {
    const text = JSON.stringify({ choices: [{ delta: { content: chunkOf(30_000) } }] })
    expect(read(`data: ${text}\n\n`, 10_000)).toEqual([text])
    expect(read(`data: ${chunkOf(128)}\n\n`, 10_000)).toEqual([chunkOf(128)])
  })
})

describe('long lines', () => {
  const MiB = 1024 * 1024
  it('are refused beyond 8 MiB, and beyond 128 MiB of all that are read at once', () => {
    const piece = Buffer.from('x'.repeat(MiB))
    const readers = Array.from({ length: 19 }, createEventReader)
    const fill = (reader: ReturnType<typeof createEventReader>, count: number) => {
      for (let filled = 0; filled < count; filled++) reader.read(piece)
    }
    try {
      const [first, ...others] = readers
      fill(first as (typeof readers)[0], 8)
      expect(() => first?.read(Buffer.from('x'))).toThrow('The answer of the model is too long.')
      expect(() => {
        for (const other of others) fill(other, 8)
      }).toThrow('Too many long answers are being read at once.')
    } finally {
      for (const reader of readers) reader.close()
    }
    fill(createEventReader(), 8)
  })
})
