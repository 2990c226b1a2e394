import { isRecord } from '../../lib/is-record.ts'
import { type Hidden, MASK } from './mask.ts'

/** Limit on the parts of secret values that a text is searched for. */
const MAX_PARTS = 10_000
/** A shorter part would be found in words that have nothing to do with it. */
const MIN_LENGTH = 3
const LEFT_OUT = 'What went wrong is left out, because it may repeat secret values.'

/**
 * Replaces secret values, and the texts, numbers and names in them, wherever a text about their calls repeats one of
 * them whole.
 */
export function hideIn(text: string, secrets: readonly (Hidden | undefined)[]): string {
  const parts = partsOf(secrets.flatMap((hidden) => Object.values(hidden ?? {})))
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
  const told = new Error(hideIn(message, [hidden]))
  return Object.assign(told, { name, stack: hideIn(stack ?? '', [hidden]) })
}

/** Returns the texts in which one of the values may be repeated. Undefined when there are too many. */
function partsOf(values: unknown[]): string[] | undefined {
  const parts: string[] = []
  // A list of what is left instead of a recursion: a model can nest values deeply.
  const left = [...values]
  while (left.length > 0) {
    const value = left.pop()
    // As it is, in JSON, and in a text in JSON.
    if (typeof value === 'string') parts.push(value, escaped(value), escaped(escaped(value)))
    if (typeof value === 'number') parts.push(String(value))
    if (isRecord(value)) parts.push(...Object.keys(value).slice(0, MAX_PARTS + 1))
    if (typeof value === 'object' && value !== null) left.push(...Object.values(value).slice(0, MAX_PARTS + 1))
    if (parts.length + left.length > MAX_PARTS) return undefined
  }
  return parts
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)
