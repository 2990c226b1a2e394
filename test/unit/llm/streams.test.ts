import type { ModelPart } from '../../../domain/models/llm/model.ts'
import { readAnswer } from '../../../domain/models/llm/providers/answer.ts'
import { readParts } from '../../../domain/models/llm/providers/streams/parts.ts'
import { createRandom } from '../../support/random.ts'
import { CONTENTS, record, settingsOf, THOUGHTS, TYPES, type Type } from './recordings.ts'

async function collect(parts: AsyncIterable<ModelPart>): Promise<unknown[]> {
  const joined: ModelPart[] = []
  for await (const part of parts) {
    const last = joined.at(-1)
    if (part.type === 'progress') continue
    if (last !== undefined && 'delta' in last && 'delta' in part && last.type === part.type) last.delta += part.delta
    else joined.push({ ...part })
  }
  return joined
}

/** Reads a recording with the AI SDK. */
async function readBySdk(type: Type, recording: string): Promise<unknown[]> {
  const headers = { 'content-type': 'text/event-stream' }
  const settings = settingsOf(type, async () => new Response(recording, { headers }))
  const protocol = TYPES[type].create(settings)
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }]
  const { stream } = await protocol.sdkModel.doStream(protocol.toCall({ prompt }, undefined))
  return collect(readAnswer(stream, protocol, settings))
}

/** Reads a recording as the service does, in pieces of the sizes that `nextSize` gives. */
async function readHere(type: Type, recording: string, nextSize: () => number): Promise<unknown[]> {
  const bytes = Buffer.from(recording)
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length; ) {
    const size = nextSize()
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  const settings = settingsOf(type, fetch)
  const protocol = TYPES[type].create(settings)
  return collect(readAnswer(readParts(ReadableStream.from(pieces), protocol.readStream()), protocol, settings))
}

const withMore = (event: object): object => ({ zebra: { choices: 'none' }, ...event, more: [{ delta: 'not this' }] })
const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  )
}

describe.each(Object.keys(TYPES) as Type[])('the reader of %s', (type) => {
  const contents = type === 'openai_completions' ? CONTENTS : [...CONTENTS, ...THOUGHTS]
  it.each(contents)('reads %s as the AI SDK does, however it arrives', async (_what, content) => {
    const recording = record(type, content)
    const expected = await readBySdk(type, recording)
    expect(expected.at(-1)).toMatchObject({ type: 'finish' })
    const random = createRandom(7)
    const whole = () => Number.POSITIVE_INFINITY
    const arrivals: [string, () => number][] = [
      [recording, whole],
      [recording, () => 1],
      [recording, () => 1 + Math.floor(random() * 20)],
      [recording.replaceAll(/\r?\n/g, '\r\n'), () => 1 + Math.floor(random() * 20)],
      [recording.replaceAll(/(?<=\n)(?=data:)/g, ': comment\nretry: 5\n'), whole],
      [`: hello\n\n${recording}`, whole],
      [record(type, content, withMore), whole],
      [record(type, content, (event) => reversed(event) as object), whole],
    ]
    for (const [text, nextSize] of arrivals) expect(await readHere(type, text, nextSize)).toEqual(expected)
  })
})
