import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createParser } from 'eventsource-parser'
import { follow } from '../../../../client/src/follow.ts'
import { ModelError, type ModelPart } from '../../../../domain/models/llm/model.ts'
import { readAnswer } from '../../../../domain/models/llm/providers/answer.ts'
import { readReason } from '../../../../domain/models/llm/providers/call-failure.ts'
import { createEventReader } from '../../../../domain/models/llm/providers/streams/events.ts'
import { readParts } from '../../../../domain/models/llm/providers/streams/parts.ts'
import { Unreadable } from '../../../../domain/models/llm/providers/streams/reader.ts'
import { createRandom } from '../../../support/random.ts'
import { CONTENTS, record, settingsOf, THOUGHTS, TYPES, type Type } from '../../llm/recordings.ts'
import { type Outcome, type Parser, refusal } from '../parser.ts'

const FRAMES = [
  'data: ',
  'data:',
  '\n\n',
  '\r\n',
  '\r',
  'event: ',
  'id: ',
  'retry: 5\n',
  ': x\n',
  '\ufeff',
  '[DONE]',
  '\0',
]
const JSONS = [
  '{',
  '}',
  '[',
  ']',
  'null',
  '"',
  ':',
  ',',
  'NaN',
  '-Infinity',
  '1e999',
  '"index":0',
  '"id":"',
  '"type":"',
  '\\ud800',
]
const WORDS: Record<Type, string[]> = {
  openai: [
    '"output_index":',
    '"summary_index":',
    'response.completed',
    'response.failed',
    'response.output_item.done',
    'reasoning',
  ],
  openai_completions: [
    '"choices":',
    '"delta":',
    '"tool_calls":',
    '"usage":',
    '"finish_reason":',
    '"error":{"code":429}',
  ],
  anthropic: [
    'content_block_start',
    'content_block_stop',
    'message_delta',
    'message_stop',
    '"error":',
    'tool_use',
    'thinking',
  ],
  gemini: [
    '"candidates":',
    '"parts":',
    '"functionCall":',
    '"thoughtSignature":',
    '"usageMetadata":',
    '"blockReason":',
    '"error":',
  ],
}

/** Cuts an input into pieces, always the same for the same input. */
function piecesOf(input: Buffer, most: number): Buffer[] {
  const random = createRandom(createHash('sha256').update(input).digest().readUInt32BE())
  const pieces: Buffer[] = []
  for (let at = 0; at < input.length; at += pieces.at(-1)?.length ?? 1) {
    pieces.push(input.subarray(at, at + 1 + Math.floor(random() * most)))
  }
  return pieces
}

type Read = { parts: ModelPart[]; error?: string }

/** Reads an answer as the service does. Throws for anything but the declared errors. */
async function readAs(type: Type, pieces: Buffer[]): Promise<Read> {
  const settings = settingsOf(type, fetch)
  const protocol = TYPES[type].create(settings)
  const parts: ModelPart[] = []
  try {
    const stream = readParts(ReadableStream.from(pieces), protocol.readStream())
    for await (const part of readAnswer(stream, protocol, settings)) {
      const last = parts.at(-1)
      if (last !== undefined && 'delta' in last && 'delta' in part && last.type === part.type) last.delta += part.delta
      else if (part.type !== 'progress') parts.push({ ...part })
    }
    return { parts }
  } catch (error) {
    refusal(error, ModelError, Unreadable)
    return { parts, error: (error as Error).message }
  }
}

function dataByReference(input: Buffer): string[] {
  const events: string[] = []
  const text = new TextDecoder().decode(input)
  // After a carriage return the reference waits for a line feed that may follow.
  createParser({ onEvent: ({ data }) => events.push(data) }).feed(text.endsWith('\r') ? `${text}\n` : text)
  return events
}

function compareEvents(input: Buffer): void {
  const reader = createEventReader()
  try {
    const events = piecesOf(input, 7).flatMap((piece) => reader.read(piece))
    assert.deepEqual(events, dataByReference(input))
  } finally {
    reader.close()
  }
}

const provider = (type: Type): Parser => ({
  name: `provider-${type.replace('_', '-')}`,
  seeds: () =>
    [...CONTENTS, ...(type === 'openai_completions' ? [] : THOUGHTS)]
      .map(([, content]) => record(type, content))
      .flatMap((text) => [text, text.replaceAll(/\r?\n/g, '\r\n')])
      .map((text) => Buffer.from(text)),
  words: [...FRAMES, ...JSONS, ...WORDS[type]],
  cost: 4,
  check: async (input) => {
    compareEvents(input)
    const whole = await readAs(type, [input])
    const cut = await readAs(type, piecesOf(input, 40))
    // Calls are counted in each piece before they are parsed.
    if (![cut, whole].some(({ error }) => error?.endsWith('tools.'))) assert.deepEqual(cut, whole)
    const size = JSON.stringify(whole.parts).length
    assert(size <= 12 * input.length + 2000, `${size} of ${input.length} bytes`)
    return whole.error === undefined ? 'accepted' : 'refused'
  },
})

const errorBody: Parser = {
  name: 'provider-error',
  seeds: () =>
    [
      '{"error": {"message": "No.", "code": 1}}',
      '[{"error": {"message": "No."}}]',
      '{"detail": [{"loc": ["a", 0], "msg": "No."}]}',
      '{"message": "No."}',
    ].map((text) => Buffer.from(text)),
  words: [...JSONS, '"error":', '"detail":', '"message":', '"msg":'],
  check: (input) => {
    const reason = readReason(input.toString())
    assert(reason.length <= input.length * 2)
    return reason === '' ? 'refused' : 'accepted'
  },
}

/** The typed client's reader of a stream of the service. */
const client: Parser = {
  name: 'client-stream',
  seeds: () =>
    [
      'event: connected\nid: event_1\ndata: {}\n\nid: event_2\ndata: {"type":"turn.started","sequence":1}\n\n',
      'data: {"sequence":1}\n\ndata: {"sequence":1}\n\n: beat\n\ndata: {"sequence":3}\n\nevent: disconnecting\ndata: {"reason":"restart","retry_ms":5}\n\n',
    ].map((text) => Buffer.from(text)),
  words: [...FRAMES, ...JSONS, '"sequence":', 'event: disconnecting\n', 'event: connected\n'],
  check: async (input): Promise<Outcome> => {
    const stop = new AbortController()
    let sequence = Number.NEGATIVE_INFINITY
    let count = 0
    const pieces = piecesOf(input, 50)
    // The client would connect again when a stream has ended.
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const piece = pieces.shift()
        if (piece !== undefined) return controller.enqueue(piece)
        stop.abort()
        controller.close()
      },
    })
    const headers = { 'content-type': 'text/event-stream' }
    const open = async (_after: string | undefined, signal: AbortSignal) => {
      signal.addEventListener('abort', () => stop.abort())
      return new Response(body, { headers })
    }
    for await (const event of follow({ open, signal: stop.signal })) {
      count++
      if (typeof event.sequence !== 'number') continue
      assert(event.sequence > sequence)
      sequence = event.sequence
    }
    assert(count <= dataByReference(input).length)
    return count > 0 ? 'accepted' : 'refused'
  },
}

export const STREAMS: Parser[] = [...(Object.keys(TYPES) as Type[]).map(provider), errorBody, client]
