import { z } from 'zod'
import { blocksOf, type Content, type ContentBlock, fragmentsOf } from './content.ts'
import { frameNamed, type ProviderRequest, type WireFormat } from './scripted-server.ts'

/** Fields of a request to OpenAI's Responses API that the tests read. */
const RequestBody = z.looseObject({
  model: z.string(),
  stream: z.literal(true),
  input: z.array(z.looseObject({})).min(1),
})
type Body = z.infer<typeof RequestBody>

const USAGE = {
  input_tokens: 7,
  input_tokens_details: { cached_tokens: 2 },
  output_tokens: 3,
  output_tokens_details: { reasoning_tokens: 1 },
  total_tokens: 10,
}

const responseOf = ({ body }: ProviderRequest<Body>, more: object) => ({
  id: 'resp_fake',
  object: 'response',
  created_at: 1_700_000_000,
  model: body.model,
  output: [],
  error: null,
  incomplete_details: null,
  ...more,
})

/** OpenAI's Responses API. Each event has a number in the sequence. */
export const responses: WireFormat<Body, Content> = {
  basePath: '/v1',
  path: /^\/responses$/,
  parse: (body) => RequestBody.parse(body),
  toEvents: (content, request) =>
    numbered(0, [
      { type: 'response.created', response: responseOf(request, { status: 'in_progress' }) },
      { type: 'response.in_progress', response: responseOf(request, { status: 'in_progress' }) },
      ...blocksOf(content).flatMap(toItemEvents),
    ]),
  toFinish: ({ finishReason, usage = USAGE }, request) => {
    const isIncomplete = finishReason !== undefined
    const status = isIncomplete ? 'incomplete' : 'completed'
    const incomplete_details = isIncomplete ? { reason: finishReason } : null
    return numbered(1000, [
      { type: `response.${status}`, response: responseOf(request, { status, incomplete_details, usage }) },
    ])
  },
  toError: (_status, message) => ({ error: { message, type: 'fake_error', param: null, code: null } }),
  frame: frameNamed,
}

const numbered = (from: number, events: object[]): object[] =>
  events.map((event, index) => ({ ...event, sequence_number: from + index }))

/** Converts a block into an output item. The signature of thinking is its encrypted content. */
function toItemEvents(block: ContentBlock, output_index: number): object[] {
  switch (block.type) {
    case 'thinking':
      return reasoningEvents(output_index, block.deltas, block.signature)
    case 'redacted':
      return reasoningEvents(output_index, [], block.data)
    case 'text':
      return messageEvents(output_index, block.deltas, block.signature)
    case 'call':
      return callEvents(output_index, block)
  }
}

function inItem(output_index: number, item: object, done: object, events: object[]): object[] {
  return [
    { type: 'response.output_item.added', output_index, item },
    ...events,
    { type: 'response.output_item.done', output_index, item: { ...item, ...done } },
  ]
}

/** Each delta of thinking is a part of the summary. The encrypted content is whole only at the end. */
function reasoningEvents(output_index: number, summaries: string[], encrypted: string | undefined): object[] {
  const item_id = `rs_${output_index}`
  const item = { id: item_id, type: 'reasoning', summary: [], encrypted_content: encrypted && `begin of ${encrypted}` }
  const events = summaries.flatMap((text, summary_index) => {
    const place = { item_id, output_index, summary_index }
    return [
      { type: 'response.reasoning_summary_part.added', ...place, part: { type: 'summary_text', text: '' } },
      { type: 'response.reasoning_summary_text.delta', ...place, delta: text },
      { type: 'response.reasoning_summary_text.done', ...place, text },
      { type: 'response.reasoning_summary_part.done', ...place, part: { type: 'summary_text', text } },
    ]
  })
  const summary = summaries.map((text) => ({ type: 'summary_text', text }))
  return inItem(output_index, item, { summary, encrypted_content: encrypted ?? null }, events)
}

/** `phase` tells a commentary from the final answer. */
function messageEvents(output_index: number, deltas: string[], phase: string | undefined): object[] {
  const item_id = `msg_${output_index}`
  const more = phase === undefined ? {} : { phase }
  const item = { id: item_id, type: 'message', role: 'assistant', status: 'in_progress', content: [], ...more }
  const place = { item_id, output_index, content_index: 0 }
  const part = { type: 'output_text', text: deltas.join(''), annotations: [] }
  return inItem(output_index, item, { status: 'completed', content: [part] }, [
    { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
    ...deltas.map((delta) => ({ type: 'response.output_text.delta', ...place, delta })),
    { type: 'response.output_text.done', ...place, text: part.text },
    { type: 'response.content_part.done', ...place, part },
  ])
}

function callEvents(output_index: number, call: Extract<ContentBlock, { type: 'call' }>): object[] {
  const item_id = `fc_${output_index}`
  const { id: call_id, name } = call
  const item = { id: item_id, type: 'function_call', status: 'in_progress', call_id, name, arguments: '' }
  return inItem(output_index, item, { status: 'completed', arguments: call.arguments }, [
    ...fragmentsOf(call.arguments).map((delta) => ({
      type: 'response.function_call_arguments.delta',
      item_id,
      output_index,
      delta,
    })),
    { type: 'response.function_call_arguments.done', item_id, output_index, arguments: call.arguments },
  ])
}
