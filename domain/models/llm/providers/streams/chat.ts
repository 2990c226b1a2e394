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
  stop: 'stop',
  length: 'length',
  content_filter: 'content-filter',
  function_call: 'tool-calls',
  tool_calls: 'tool-calls',
}

/** Reads a stream of Chat Completions, from OpenAI or a server that speaks the protocol in its own way. */
export function readChat(): StreamReader {
  const calls = createCalls()
  let responseId: string | undefined
  let usage = toUsage({})
  let reason: string | undefined
  let isRefusal = false

  const readDelta = (delta: Json): Part[] => {
    const parts: Part[] = []
    // OpenAI has no thinking here. DeepSeek, vLLM and llama.cpp send the first field, OpenRouter and Ollama the second.
    const thinking = toText(delta.reasoning_content ?? delta.reasoning)
    if (thinking !== '') parts.push({ type: 'reasoning-delta', id: 'thinking', delta: thinking })
    const refusal = toText(delta.refusal)
    if (refusal !== '') isRefusal = true
    const text = toText(delta.content) + refusal
    if (text !== '') parts.push({ type: 'text-delta', id: '0', delta: text })
    if (Array.isArray(delta.tool_calls))
      for (const call of delta.tool_calls.filter(isRecord)) parts.push(calls.add(call))
    return parts
  }
  return {
    read: (chunk) => {
      if (chunk.error !== undefined && chunk.error !== null) return [toErrorPart(chunk.error)]
      if (!Array.isArray(chunk.choices)) throw new Unreadable('a chunk without choices')
      const parts: Part[] = []
      if (responseId === undefined) {
        responseId = toWord(chunk.id)
        if (responseId !== undefined) parts.push({ type: 'response-metadata', id: responseId })
      }
      if (isRecord(chunk.usage)) usage = readUsage(chunk.usage)
      const choice = toRecord(chunk.choices[0])
      reason = toWord(choice.finish_reason) ?? reason
      parts.push(...readDelta(toRecord(choice.delta)))
      return parts
    },
    end: () => {
      const unified = reason === undefined ? 'other' : (REASONS[reason] ?? 'other')
      return [...calls.all(), toFinishPart(isRefusal && unified === 'stop' ? 'content-filter' : unified, reason, usage)]
    },
  }
}

function readUsage(usage: Json) {
  const details = toRecord(usage.prompt_tokens_details)
  return toUsage({
    input: toCount(usage.prompt_tokens) ?? 0,
    output: toCount(usage.completion_tokens) ?? 0,
    cached: toCount(details.cached_tokens) ?? 0,
    written: toCount(details.cache_write_tokens),
  })
}

type Call = { index: number; id: string | undefined; name: string; input: string }

/**
 * Puts the fragments of an answer's calls together. A fragment belongs to the call with its index, else to the one with
 * its id. A fragment without both begins a call if it has a name, else it continues the latest one. A name with another
 * id than the call's begins a call too: some servers give all calls the same index.
 */
function createCalls() {
  const calls: Call[] = []
  let next = 0
  const find = (index: number | undefined, id: string | undefined, name: string | undefined): Call | undefined => {
    const byId = id === undefined ? undefined : calls.findLast((call) => call.id === id)
    if (index === undefined) return byId ?? (id === undefined && name === undefined ? calls.at(-1) : undefined)
    const byIndex = calls.findLast((call) => call.index === index)
    if (byIndex === undefined) return name === undefined ? byId : undefined
    return name !== undefined && id !== undefined && byIndex.id !== undefined && byIndex.id !== id ? undefined : byIndex
  }
  const begin = (index = next, id: string | undefined, name: string | undefined): Call => {
    if (name === undefined) throw new Unreadable('a call without a name')
    next = Math.max(next, index + 1)
    const call = { index, id, name, input: '' }
    calls.push(call)
    return call
  }
  return {
    add: (fragment: Json): Part => {
      const { name, arguments: written } = toRecord(fragment.function)
      const [index, id, word] = [toIndex(fragment.index), toWord(fragment.id), toWord(name)]
      const call = find(index, id, word) ?? begin(index, id, word)
      const delta = isRecord(written) ? JSON.stringify(written) : toText(written)
      call.input += delta
      return { type: 'tool-input-delta', id: `${call.index}`, delta }
    },
    all: (): Part[] =>
      calls
        .toSorted((a, b) => a.index - b.index)
        .map(({ id = '', name, input }) => ({ type: 'tool-call', toolCallId: id, toolName: name, input })),
  }
}

function toIndex(value: unknown): number | undefined {
  const index = toCount(value)
  return index !== undefined && Number.isSafeInteger(index) && index >= 0 ? index : undefined
}
