import { invalid } from '../../kit/errors.ts'

/**
 * Field of a cron expression: its label in sentences and its valid numbers. `names` stand for numbers from `first` on.
 */
export type FieldKind = {
  label: string
  min: number
  max: number
  names?: { first: number; list: readonly string[] }
}

/** Item of a list: all, a value or a range, each with an optional step. */
const ITEM = /^(?:\*|([0-9]{1,4}|[a-z]{3})(?:-([0-9]{1,4}|[a-z]{3}))?)(?:\/([0-9]{1,4}))?$/i
const SHOWN_LENGTH = 40

/** Returns the numbers that a field matches, in ascending order. Throws `invalid`. */
export function readField(text: string, kind: FieldKind): number[] {
  const matched = new Set<number>()
  for (const item of text.split(',')) addItem(matched, item, kind, text)
  return [...matched].sort((a, b) => a - b)
}

function addItem(matched: Set<number>, item: string, kind: FieldKind, text: string): void {
  const parts = ITEM.exec(item)
  if (parts === null) throw wrong(text, kind)
  const [, first, last, every] = parts
  const start = first === undefined ? kind.min : numberOf(first, kind)
  const isOne = first !== undefined && last === undefined && every === undefined
  const end = isOne ? start : last === undefined ? kind.max : numberOf(last, kind, start)
  const step = Number(every ?? 1)
  // NaN, from an unknown name, fails each comparison.
  if (!(kind.min <= start && start <= end && end <= kind.max && step >= 1)) throw wrong(text, kind)
  for (let value = start; value <= end; value += step) matched.add(value)
}

/** Returns NaN for an unknown name. A Sunday that ends a range is after `start`. */
function numberOf(text: string, { names, max }: FieldKind, start = 0): number {
  if (/^[0-9]/.test(text)) return Number(text)
  const index = names?.list.indexOf(text.toUpperCase()) ?? -1
  if (names === undefined || index < 0) return Number.NaN
  const value = names.first + index
  return value < start && value + names.list.length <= max ? value + names.list.length : value
}

function wrong(text: string, { label, min, max, names }: FieldKind) {
  const shown = text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}…` : text
  const named = names === undefined ? '' : ` or ${names.list[0]} to ${names.list.at(-1)}`
  return invalid(
    `cron_expression: must have a ${label} of ${min} to ${max}${named}, not ${JSON.stringify(shown)}; ` +
      'lists (a,b), ranges (a-b), steps (*/a) and * are allowed',
  )
}
