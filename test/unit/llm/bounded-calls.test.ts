import { boundLines } from '../../../domain/models/llm/providers/bounded-fetch.ts'

/** Reads an answer of one line that comes in pieces of 10 KB, through the bounds. */
async function read(line: string): Promise<string> {
  const bytes = Buffer.from(`data: ${line}\n\n`)
  const pieces = Array.from({ length: Math.ceil(bytes.length / 10_000) }, (_, index) =>
    bytes.subarray(index * 10_000, (index + 1) * 10_000),
  )
  const fetch = boundLines(async () => new Response(ReadableStream.from(pieces)))
  return (await fetch('http://localhost')).text()
}

const call = (index: number) => ({
  index,
  id: `c${index}`,
  type: 'function',
  function: { name: 'echo', arguments: '{}' },
})
const chunkOf = (count: number) =>
  JSON.stringify({ choices: [{ delta: { tool_calls: Array.from({ length: count }, (_, index) => call(index)) } }] })

describe('a line with thousands of calls', () => {
  it('is refused before it is parsed', async () => {
    await expect(read(chunkOf(30_000))).rejects.toMatchObject({ code: 'too_many_tool_calls', retryable: false })
  })

  it('is told from one whose text is about calls', async () => {
    const text = JSON.stringify({ choices: [{ delta: { content: chunkOf(30_000) } }] })
    expect(await read(text)).toContain(text)
    expect(await read(chunkOf(128))).toContain('c127')
  })
})
