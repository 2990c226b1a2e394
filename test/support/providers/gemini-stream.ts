import { z } from 'zod'
import { blocksOf, type Content, type ContentBlock } from './content.ts'
import { frameData, type WireFormat } from './scripted-server.ts'

/** Fields of a request to Gemini's streamGenerateContent that the tests read. The model is in the path. */
const RequestBody = z.looseObject({
  contents: z.array(z.looseObject({ role: z.enum(['user', 'model']), parts: z.array(z.looseObject({})).min(1) })),
})
type Body = z.infer<typeof RequestBody>

const USAGE = { promptTokenCount: 7, cachedContentTokenCount: 2, candidatesTokenCount: 2, thoughtsTokenCount: 1 }

const STATUSES: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
}

const FRAME = { modelVersion: 'gemini-fake', responseId: 'gemini-response-fake' }

/** Gemini's streamGenerateContent. Calls come whole, without fragments of their arguments. */
export const geminiStream: WireFormat<Body, Content> = {
  basePath: '/v1beta',
  path: /^\/models\/[\w.-]+:streamGenerateContent\?alt=sse$/,
  parse: (body) => RequestBody.parse(body),
  toEvents: (content) =>
    blocksOf(content).flatMap((block) =>
      toParts(block).map((part) => ({
        candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }],
        ...FRAME,
      })),
    ),
  toFinish: ({ finishReason = 'STOP', usage = USAGE }) => [
    {
      candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason, index: 0 }],
      usageMetadata: usage,
      ...FRAME,
    },
  ],
  toError: (code, message) => ({ error: { code, message, status: STATUSES[code] ?? 'UNKNOWN' } }),
  frame: (event) => frameData(event).replaceAll('\n', '\r\n'),
}

function toParts(block: ContentBlock): object[] {
  const signed = 'signature' in block ? { thoughtSignature: block.signature } : {}
  switch (block.type) {
    case 'thinking':
      return block.deltas.map((text) => ({ text, thought: true, ...signed }))
    case 'redacted':
      return [{ text: '', thoughtSignature: block.data }]
    case 'text':
      return block.deltas.map((text) => ({ text, ...signed }))
    case 'call':
      return [
        { functionCall: { id: block.id, name: block.name, args: JSON.parse(block.arguments || '{}') }, ...signed },
      ]
  }
}
