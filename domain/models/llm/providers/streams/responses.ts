import type { LanguageModelV4FinishReason } from '@ai-sdk/provider'
import {
  type Json,
  type Part,
  type StreamReader,
  toCount,
  toErrorPart,
  toFinishPart,
  toRecord,
  toText,
  toUsage,
  toWord,
  Unreadable,
} from './reader.ts'

/** Parts of a summary that are not over, and whether their text is. */
type Thinking = { encrypted: unknown; summaries: Map<number, 'begun' | 'done'> }

/** Reads a stream of OpenAI's Responses API. */
export function readResponses(): StreamReader {
  /** Ids of the items that have begun, by their index: some servers give an item another id in each event. */
  const ids = new Map<unknown, string>()
  const thinking = new Map<string, Thinking>()
  let hasCalls = false
  let isRefusal = false
  let phase: string | undefined

  const idOf = (event: Json): string => ids.get(event.output_index) ?? toText(event.item_id)
  const beginSummary = (id: string, index: number, { encrypted, summaries }: Thinking): Part => {
    summaries.set(index, 'begun')
    return { type: 'reasoning-start', id: `${id}:${index}`, ...metadata({ itemId: id, ...encryptedBy(encrypted) }) }
  }
  const beginItem = (index: unknown, item: Json): Part[] => {
    const id = toText(item.id)
    if (item.type === 'message') {
      ids.set(index, id)
      phase = toWord(item.phase)
      return [{ type: 'text-start', id, ...metadata({ itemId: id, ...(phase && { phase }) }) }]
    }
    if (item.type !== 'reasoning') return []
    ids.set(index, id)
    const begun: Thinking = { encrypted: item.encrypted_content, summaries: new Map() }
    thinking.set(id, begun)
    return [beginSummary(id, 0, begun)]
  }
  const endItem = (event: Json, item: Json): Part[] => {
    const id = ids.get(event.output_index) ?? toText(item.id)
    if (item.type === 'function_call') {
      hasCalls = true
      const call = { toolCallId: toText(item.call_id), toolName: toText(item.name), input: toText(item.arguments) }
      return [{ type: 'tool-call', ...call }]
    }
    ids.delete(event.output_index)
    if (item.type === 'message') {
      const said = toWord(item.phase) ?? phase
      return [{ type: 'text-end', id, ...metadata({ itemId: id, ...(said && { phase: said }) }) }]
    }
    const open = item.type === 'reasoning' ? [...(thinking.get(id)?.summaries.keys() ?? [])] : []
    thinking.delete(id)
    // The encrypted content is whole only now.
    const more = metadata({ itemId: id, ...encryptedBy(item.encrypted_content) })
    return open.map((index) => ({ type: 'reasoning-end', id: `${id}:${index}`, ...more }))
  }
  const addSummary = (event: Json): Part[] => {
    const id = idOf(event)
    const item = thinking.get(id)
    const index = toCount(event.summary_index) ?? 0
    if (item === undefined || index === 0) return []
    const over = [...item.summaries].filter(([, state]) => state === 'done').map(([summary]) => summary)
    for (const summary of over) item.summaries.delete(summary)
    const ends = over.map((summary): Part => {
      return { type: 'reasoning-end', id: `${id}:${summary}`, ...metadata({ itemId: id }) }
    })
    return [...ends, beginSummary(id, index, item)]
  }
  const finish = (response: Json, isFailed: boolean): Part[] => {
    const reason = toWord(toRecord(response.incomplete_details).reason)
    const unified = unifiedOf(reason, { isFailed, hasCalls, isRefusal })
    const raw = reason ?? (isFailed ? 'error' : undefined)
    return [toFinishPart(unified, raw, readUsage(response.usage))]
  }
  let finished: Part[] = []

  const readers: Record<string, (event: Json) => Part[]> = {
    'response.created': ({ response }) => [{ type: 'response-metadata', id: toText(toRecord(response).id) }],
    'response.output_item.added': (event) => beginItem(event.output_index, toRecord(event.item)),
    'response.output_item.done': (event) => endItem(event, toRecord(event.item)),
    'response.output_text.delta': (event) => [{ type: 'text-delta', id: idOf(event), delta: toText(event.delta) }],
    'response.refusal.delta': (event) => {
      isRefusal = true
      return [{ type: 'text-delta', id: idOf(event), delta: toText(event.delta) }]
    },
    'response.reasoning_summary_part.added': addSummary,
    'response.reasoning_summary_text.delta': (event) => {
      const id = `${idOf(event)}:${toCount(event.summary_index) ?? 0}`
      return [{ type: 'reasoning-delta', id, delta: toText(event.delta) }]
    },
    'response.reasoning_summary_part.done': (event) => {
      thinking.get(idOf(event))?.summaries.set(toCount(event.summary_index) ?? 0, 'done')
      return []
    },
    'response.function_call_arguments.delta': (event) => [
      { type: 'tool-input-delta', id: `${event.output_index}`, delta: toText(event.delta) },
    ],
    'response.completed': ({ response }) => {
      finished = finish(toRecord(response), false)
      return []
    },
    'response.failed': ({ response }) => {
      const { error } = toRecord(response)
      finished = finish(toRecord(response), true)
      return error === undefined || error === null ? [] : [toErrorPart(error)]
    },
    error: (event) => [toErrorPart(event.error ?? event)],
  }
  return {
    read: (event) => {
      if (typeof event.type !== 'string') throw new Unreadable('an event without a type')
      const type = event.type === 'response.incomplete' ? 'response.completed' : event.type
      return Object.hasOwn(readers, type) ? (readers[type]?.(event) ?? []) : []
    },
    end: () => finished,
  }
}

const metadata = (openai: Record<string, string | null>) => ({ providerMetadata: { openai } })

const encryptedBy = (content: unknown) => ({ reasoningEncryptedContent: toWord(content) ?? null })

function unifiedOf(
  reason: string | undefined,
  { isFailed, hasCalls, isRefusal }: { isFailed: boolean; hasCalls: boolean; isRefusal: boolean },
): LanguageModelV4FinishReason['unified'] {
  if (reason === 'max_output_tokens') return 'length'
  if (reason === 'content_filter') return 'content-filter'
  if (reason === undefined && isFailed) return 'error'
  if (hasCalls) return 'tool-calls'
  if (reason !== undefined) return 'other'
  return isRefusal ? 'content-filter' : 'stop'
}

function readUsage(value: unknown) {
  const usage = toRecord(value)
  const details = toRecord(usage.input_tokens_details)
  return toUsage({
    input: toCount(usage.input_tokens),
    output: toCount(usage.output_tokens),
    cached: toCount(details.cached_tokens) ?? 0,
    written: toCount(details.cache_write_tokens),
  })
}
