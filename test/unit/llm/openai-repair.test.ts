import { mapLines } from '../../../domain/models/llm/providers/map-lines.ts'
import { createRepair } from '../../../domain/models/llm/providers/openai-repair.ts'

/** Reads what the repair makes of a stream whose bytes arrive in pieces of `size`. */
async function repaired(text: string, size = Number.POSITIVE_INFINITY): Promise<string> {
  const bytes = new TextEncoder().encode(text)
  let position = 0
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (position >= bytes.length) return controller.close()
      controller.enqueue(bytes.slice(position, position + size))
      position += Math.min(size, bytes.length)
    },
  })
  return new Response(mapLines(body, createRepair())).text()
}

const call = (more: object) => `{"choices":[{"delta":{"tool_calls":[${JSON.stringify(more)}]}}]}`
const BROKEN = call({ id: 'é😀\u2028', function: { name: 'add', arguments: { a: 1 } } })
const WHOLE = JSON.stringify({
  choices: [
    {
      delta: {
        tool_calls: [{ id: 'é😀\u2028', function: { name: 'add', arguments: '{"a":1}' }, index: 0, type: 'function' }],
      },
      index: 0,
    },
  ],
})

describe('a stream', () => {
  it.each(['\n', '\r', '\r\n'])('is repaired however its bytes arrive, with the end of line %j', async (end) => {
    const stream = (data: string) => `: hello${end}${end}id: 1${end}data: ${data}${end}${end}data:[DONE]`
    for (const size of [1, 2, 3, 7, 64, 100_000]) expect(await repaired(stream(BROKEN), size)).toBe(stream(WHOLE))
  })

  it('gets the index of its choice, also with an empty usage', async () => {
    const chunk = (index: string) => `data: {"choices":[{"delta":{"content":"a"}${index}}],"usage":null}\n\n`
    expect(await repaired(chunk(''))).toBe(chunk(',"index":0'))
  })

  it.each([
    ['text', 'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n'],
    ['an error', 'data: {"error": {"message": "no \\"tool_calls\\""}}\n\n'],
    ['a comment', ': "tool_calls"\n\n'],
    ['what is not JSON', 'data: {"tool_calls"\n\n'],
    [
      'JSON that is not a chunk',
      'data: ["tool_calls", "usage"]\n\ndata: "tool_calls"\n\ndata: {"choices":"tool_calls"}\n\n',
    ],
    ['nothing', ''],
  ])('that has %s stays as it is', async (_what, stream) => {
    expect(await repaired(stream)).toBe(stream)
  })

  it('takes time in proportion to its length, in pieces as small as they come', async () => {
    const timed = async (length: number) => {
      const before = process.cpuUsage()
      await repaired(`data: ${call({ id: 'x'.repeat(length) })}\n\n`, 16)
      return process.cpuUsage(before).user
    }
    await timed(100_000)
    const ratio = (await timed(1_600_000)) / (await timed(200_000))
    expect(ratio).toBeLessThan(24)
  })
})
