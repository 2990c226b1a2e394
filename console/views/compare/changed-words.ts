/** Part of a text, and whether the other text lacks it. */
export type Piece = { text: string; isChanged: boolean }

/** Largest number of pairs of words that are compared. Of larger texts, all between their equal ends counts as changed. */
const MAX_PAIRS = 4_000_000

/** Returns two texts in pieces, with the words marked that only one of them has. */
export function changedWords(a: string, b: string): { a: Piece[]; b: Piece[] } {
  const [left, right] = [wordsOf(a), wordsOf(b)]
  const most = Math.min(left.length, right.length)
  let start = 0
  while (start < most && left[start] === right[start]) start++
  let end = 0
  while (end < most - start && left.at(-1 - end) === right.at(-1 - end)) end++
  const middle = (words: string[]) => words.slice(start, words.length - end)
  const kept = commonOf(middle(left), middle(right))
  const piecesOf = (words: string[], common: Set<number>) =>
    inPieces(words, (index) => index >= start && index < words.length - end && !common.has(index - start))
  return { a: piecesOf(left, kept.a), b: piecesOf(right, kept.b) }
}

const wordsOf = (text: string): string[] => text.split(/(\s+)/).filter((word) => word !== '')

/** Returns the places of a longest common subsequence in both lists. */
function commonOf(a: string[], b: string[]): { a: Set<number>; b: Set<number> } {
  const common = { a: new Set<number>(), b: new Set<number>() }
  if (a.length * b.length > MAX_PAIRS) return common
  const width = b.length + 1
  /** Lengths for the rests of both lists from (i, j). */
  const lengths = new Uint32Array((a.length + 1) * width)
  const lengthAt = (i: number, j: number) => lengths[i * width + j] ?? 0
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        a[i] === b[j] ? lengthAt(i + 1, j + 1) + 1 : Math.max(lengthAt(i + 1, j), lengthAt(i, j + 1))
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      common.a.add(i++)
      common.b.add(j++)
    } else if (lengthAt(i + 1, j) >= lengthAt(i, j + 1)) i++
    else j++
  }
  return common
}

/** Joins neighbours that are alike. */
function inPieces(words: string[], isChangedAt: (index: number) => boolean): Piece[] {
  const pieces: Piece[] = []
  for (const [index, text] of words.entries()) {
    const last = pieces.at(-1)
    const isChanged = isChangedAt(index)
    if (last?.isChanged === isChanged) last.text += text
    else pieces.push({ text, isChanged })
  }
  return pieces
}
