import { isRecord } from '../../lib/is-record.ts'
import { type Hidden, MASK } from './mask.ts'

/** Limit on the parts of secret values that a text is searched for. */
const MAX_PARTS = 1000
/** A shorter part would be found in words that have nothing to do with it. */
const MIN_LENGTH = 3
const LEFT_OUT = 'What went wrong is left out, because it may repeat secret values.'

/**
 * Replaces the secret values of a call, and the texts, numbers and names in them, wherever a text about the call repeats
 * one of them whole. Without secrets the text stays.
 */
export function hideIn(text: string, hidden: Hidden | undefined): string {
  if (hidden === undefined) return text
  const parts = partsOf(hidden)
  if (parts === undefined) return LEFT_OUT
  const found = [...new Set(parts)].filter((part) => part.length >= MIN_LENGTH && text.includes(part))
  if (found.length === 0) return text
  // The longest first, of those that begin at the same place; all at once, so that no mask is searched.
  const longestFirst = found.toSorted((a, b) => b.length - a.length)
  return text.replaceAll(new RegExp(longestFirst.map(literally).join('|'), 'g'), MASK)
}

const literally = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** Replaces the secrets in what a log or a stack has of an error. Without secrets the error stays the same. */
export function hideInError(error: unknown, hidden: Hidden | undefined): unknown {
  if (hidden === undefined) return error
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  const told = new Error(hideIn(message, hidden))
  return Object.assign(told, { name, stack: hideIn(stack ?? '', hidden) })
}

/** Returns the texts in which a secret may be repeated. Undefined when there are too many. */
function partsOf(hidden: Hidden): string[] | undefined {
  const parts: string[] = []
  // A list of what is left instead of a recursion: a model can nest values deeply.
  const left: unknown[] = Object.values(hidden)
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value === 'string') parts.push(value, JSON.stringify(value).slice(1, -1))
    if (typeof value === 'number') parts.push(String(value))
    if (isRecord(value)) parts.push(...Object.keys(value).slice(0, MAX_PARTS + 1))
    if (typeof value === 'object' && value !== null) left.push(...Object.values(value).slice(0, MAX_PARTS + 1))
    if (parts.length + left.length > MAX_PARTS) return undefined
  }
  return parts
}
