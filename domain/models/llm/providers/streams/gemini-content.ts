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
} from './reader.ts'

const REASONS: Record<string, LanguageModelV4FinishReason['unified']> = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  IMAGE_SAFETY: 'content-filter',
  RECITATION: 'content-filter',
  SAFETY: 'content-filter',
  BLOCKLIST: 'content-filter',
  PROHIBITED_CONTENT: 'content-filter',
  SPII: 'content-filter',
  MALFORMED_FUNCTION_CALL: 'error',
}

type Kind = 'text' | 'reasoning'

/** Reads a stream of Gemini's streamGenerateContent. */
export function readGemini(): StreamReader {
  let block: { kind: Kind; id: string } | undefined
  let blockCount = 0
  let hasCalls = false
  let responseId: string | undefined
  let usage: Json | undefined
  let reason: string | undefined
  /** Reason for which Gemini has refused the prompt, and so answers nothing. */
  let refused: string | undefined

  /** Returns the id of the block that a text of that kind goes on with. */
  const blockOf = (kind: Kind): string => {
    if (block?.kind !== kind) block = { kind, id: `${blockCount++}` }
    return block.id
  }
  const readPart = (part: Json): Part[] => {
    const signature = toWord(part.thoughtSignature)
    const more = signature === undefined ? {} : { providerMetadata: { google: { thoughtSignature: signature } } }
    if (typeof part.text === 'string') {
      const kind: Kind = part.thought === true ? 'reasoning' : 'text'
      if (part.text !== '') return [{ type: `${kind}-delta`, id: blockOf(kind), delta: part.text, ...more }]
      if (signature === undefined) return []
      // A signature without a text belongs to the text before it, or stands for itself.
      if (block?.kind === 'text') return [{ type: 'text-delta', id: block.id, delta: '', ...more }]
      block = undefined
      return [{ type: `${kind}-delta`, id: `${blockCount++}`, delta: '', ...more }]
    }
    if (!isRecord(part.functionCall)) return []
    const { id, name, args = {} } = part.functionCall
    if (toWord(name) === undefined) return []
    block = undefined
    hasCalls = true
    const input = typeof args === 'string' ? args : JSON.stringify(args ?? {})
    return [
      { type: 'tool-input-delta', id: toText(id), delta: input },
      { type: 'tool-call', toolCallId: toText(id), toolName: toText(name), input, ...more },
    ]
  }
  return {
    read: (chunk) => {
      if (chunk.error !== undefined && chunk.error !== null) return [toErrorPart(chunk.error)]
      const parts: Part[] = []
      if (responseId === undefined) {
        responseId = toWord(chunk.responseId)
        if (responseId !== undefined) parts.push({ type: 'response-metadata', id: responseId })
      }
      if (isRecord(chunk.usageMetadata)) usage = chunk.usageMetadata
      const blocked = toWord(toRecord(chunk.promptFeedback).blockReason)
      if (blocked !== undefined && !UNSPECIFIED.test(blocked)) refused ??= blocked
      const candidate = toRecord(Array.isArray(chunk.candidates) ? chunk.candidates[0] : undefined)
      if (refused !== undefined) return parts
      const { parts: given } = toRecord(candidate.content)
      if (Array.isArray(given)) for (const part of given.filter(isRecord)) parts.push(...readPart(part))
      reason = toWord(candidate.finishReason) ?? reason
      return parts
    },
    end: () => {
      if (refused !== undefined) return [toFinishPart('content-filter', refused, readUsage(usage))]
      const unified = REASONS[reason ?? ''] ?? 'other'
      return [toFinishPart(unified === 'stop' && hasCalls ? 'tool-calls' : unified, reason, readUsage(usage))]
    },
  }
}

const UNSPECIFIED = /^BLOCK(ED)?_REASON_UNSPECIFIED$/

function readUsage(usage: Json | undefined) {
  if (usage === undefined) return toUsage({})
  const count = (name: string) => toCount(usage[name]) ?? 0
  return toUsage({
    input: count('promptTokenCount') + count('toolUsePromptTokenCount'),
    output: count('candidatesTokenCount') + count('thoughtsTokenCount'),
    cached: count('cachedContentTokenCount'),
  })
}
