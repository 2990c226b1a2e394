/** Line of a text, or of the difference of two. `of` and `to` are its numbers in the old and the new text, from 1. */
export type Line = { kind: 'same' | 'added' | 'removed'; text: string; of?: number; to?: number }

/** Limits beyond which a text has no numbers, and two texts are not compared. */
const MAX_LINES = 5000
const MAX_CHARACTERS = 200_000
/** Maximum pairs of lines to compare. Beyond, all old lines are removed and all new ones added. */
const MAX_PAIRS = 1_000_000

/** Returns the lines of a text without an empty last one, or undefined if there are too many. */
export function linesOf(text: string): string[] | undefined {
  if (text.length > MAX_CHARACTERS) return undefined
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines.length > MAX_LINES ? undefined : lines
}

/** Numbers the lines of a text, or returns undefined if there are too many. */
export const numbered = (text: string): Line[] | undefined =>
  linesOf(text)?.map((line, index) => ({ kind: 'same', text: line, to: index + 1 }))

/** Compares two texts by lines, or returns undefined if they are too long. */
export function differenceOf(before: string, after: string): Line[] | undefined {
  const [old, now] = [linesOf(before), linesOf(after)]
  if (old === undefined || now === undefined) return undefined
  const common = Math.min(old.length, now.length)
  let start = 0
  while (start < common && old[start] === now[start]) start++
  let end = 0
  while (end < common - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++
  const [oldEnd, nowEnd] = [old.length - end, now.length - end]
  const same = (text: string, of: number, to: number): Line => ({ kind: 'same', text, of: of + 1, to: to + 1 })
  return [
    ...old.slice(0, start).map((text, index) => same(text, index, index)),
    ...changesOf(old.slice(start, oldEnd), now.slice(start, nowEnd), start),
    ...old.slice(oldEnd).map((text, index) => same(text, oldEnd + index, nowEnd + index)),
  ]
}

/** Returns the changes between lines that begin at the same place, by their longest common subsequence. */
function changesOf(old: string[], now: string[], start: number): Line[] {
  const lengths = old.length * now.length > MAX_PAIRS ? undefined : commonLengths(old, now)
  const width = now.length + 1
  const at = (of: number, to: number): number => lengths?.[of * width + to] ?? 0
  const lines: Line[] = []
  let [of, to] = [0, 0]
  while (of < old.length || to < now.length) {
    const [oldLine, newLine] = [old[of], now[to]]
    if (lengths !== undefined && oldLine !== undefined && oldLine === newLine) {
      lines.push({ kind: 'same', text: oldLine, of: start + ++of, to: start + ++to })
    } else if (oldLine !== undefined && (newLine === undefined || at(of + 1, to) >= at(of, to + 1))) {
      lines.push({ kind: 'removed', text: oldLine, of: start + ++of })
    } else {
      lines.push({ kind: 'added', text: newLine ?? '', to: start + ++to })
    }
  }
  return lines
}

/** Lengths of the longest common subsequences from each pair of lines to the ends. */
function commonLengths(old: string[], now: string[]): Uint16Array {
  const width = now.length + 1
  const lengths = new Uint16Array((old.length + 1) * width)
  for (let of = old.length - 1; of >= 0; of--) {
    for (let to = now.length - 1; to >= 0; to--) {
      const at = of * width + to
      lengths[at] =
        old[of] === now[to]
          ? (lengths[at + width + 1] ?? 0) + 1
          : Math.max(lengths[at + width] ?? 0, lengths[at + 1] ?? 0)
    }
  }
  return lengths
}

/** Unchanged lines that are left out of a difference. */
export type Fold = { kind: 'fold'; count: number }
/** Unchanged lines that are shown around a change. */
const AROUND = 3

/** Leaves out unchanged lines that are far from a change. */
export function folded(lines: Line[]): (Line | Fold)[] {
  const shown = new Set<number>()
  for (const [index, { kind }] of lines.entries()) {
    if (kind === 'same') continue
    for (let near = index - AROUND; near <= index + AROUND; near++) shown.add(near)
  }
  const found: (Line | Fold)[] = []
  for (const [index, line] of lines.entries()) {
    const last = found.at(-1)
    if (shown.has(index)) found.push(line)
    else if (last?.kind === 'fold') last.count++
    else found.push({ kind: 'fold', count: 1 })
  }
  return found
}
