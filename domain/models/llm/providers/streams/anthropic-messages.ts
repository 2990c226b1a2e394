import type { LanguageModelV4FinishReason } from '@ai-sdk/provider'
import { isRecord } from '../../../../../lib/is-record.ts'
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

const REASONS: Record<string, LanguageModelV4FinishReason['unified']> = {
  end_turn: 'stop',
  pause_turn: 'stop',
  stop_sequence: 'stop',
  refusal: 'content-filter',
  tool_use: 'tool-calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
}

/** A block that has begun. `input` is the text of a call's arguments so far. */
type Block = { kind: 'text' | 'reasoning' } | { kind: 'call'; id: string; name: string; input: string }

/** Reads a stream of Anthropic's Messages API. */
export function readAnthropic(): StreamReader {
  const blocks = new Map<unknown, Block>()
  let usage: Json = {}
  let reason: string | undefined

  const begin = (index: unknown, block: Json): Part[] => {
    const id = `${index}`
    switch (block.type) {
      case 'text':
        blocks.set(index, { kind: 'text' })
        return [{ type: 'text-start', id }]
      case 'thinking':
        blocks.set(index, { kind: 'reasoning' })
        return [{ type: 'reasoning-start', id }]
      case 'redacted_thinking':
        blocks.set(index, { kind: 'reasoning' })
        return [{ type: 'reasoning-start', id, ...metadata({ redactedData: toText(block.data) }) }]
      case 'tool_use': {
        const name = toWord(block.name)
        if (name === undefined) throw new Unreadable('a call without a name')
        const input = isRecord(block.input) && Object.keys(block.input).length > 0 ? JSON.stringify(block.input) : ''
        blocks.set(index, { kind: 'call', id: toText(block.id), name, input })
        return []
      }
      default:
        // Other blocks come from tools that the service does not use.
        return []
    }
  }
  const add = (index: unknown, delta: Json): Part[] => {
    const id = `${index}`
    const block = blocks.get(index)
    switch (delta.type) {
      case 'text_delta':
        return [{ type: 'text-delta', id, delta: toText(delta.text) }]
      case 'thinking_delta':
        return [{ type: 'reasoning-delta', id, delta: toText(delta.thinking) }]
      case 'signature_delta':
        if (block?.kind !== 'reasoning') return []
        return [{ type: 'reasoning-delta', id, delta: '', ...metadata({ signature: toText(delta.signature) }) }]
      case 'input_json_delta': {
        if (block?.kind !== 'call') return []
        const written = toText(delta.partial_json)
        block.input += written
        return [{ type: 'tool-input-delta', id, delta: written }]
      }
      default:
        return []
    }
  }
  const end = (index: unknown): Part[] => {
    const block = blocks.get(index)
    blocks.delete(index)
    if (block?.kind !== 'call') return block === undefined ? [] : [{ type: `${block.kind}-end`, id: `${index}` }]
    return [{ type: 'tool-call', toolCallId: block.id, toolName: block.name, input: block.input }]
  }

  const readers: Record<string, (event: Json) => Part[]> = {
    message_start: ({ message }) => {
      const { id, usage: ofInput, stop_reason } = toRecord(message)
      usage = toRecord(ofInput)
      reason = toWord(stop_reason)
      return [{ type: 'response-metadata', id: toText(id) }]
    },
    content_block_start: ({ index, content_block }) => begin(index, toRecord(content_block)),
    content_block_delta: ({ index, delta }) => add(index, toRecord(delta)),
    content_block_stop: ({ index }) => end(index),
    message_delta: ({ delta, usage: ofOutput }) => {
      reason = toWord(toRecord(delta).stop_reason)
      const given = Object.entries(toRecord(ofOutput)).filter(([, count]) => count !== null)
      usage = { ...usage, ...Object.fromEntries(given) }
      return []
    },
    message_stop: () => [toFinishPart(REASONS[reason ?? ''] ?? 'other', reason, readUsage(usage))],
    error: ({ error }) => [toErrorPart(error)],
  }
  return {
    read: (event) => {
      if (typeof event.type !== 'string') throw new Unreadable('an event without a type')
      return Object.hasOwn(readers, event.type) ? (readers[event.type]?.(event) ?? []) : []
    },
    end: () => [],
  }
}

const metadata = (anthropic: Record<string, string>) => ({ providerMetadata: { anthropic } })

/** Anthropic counts the tokens of its cache apart from the input's. */
function readUsage(usage: Json) {
  const cached = toCount(usage.cache_read_input_tokens) ?? 0
  const written = toCount(usage.cache_creation_input_tokens) ?? 0
  const input = (toCount(usage.input_tokens) ?? 0) + cached + written
  return toUsage({ input, output: toCount(usage.output_tokens) ?? 0, cached, written })
}
