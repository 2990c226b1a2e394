/** Returns the range of changed lines, from 0: all between the unchanged ends of the text. May be empty. */
export function changedLines(before: string, after: string): { from: number; to: number } {
  const [old, now] = [before.split('\n'), after.split('\n')]
  const common = Math.min(old.length, now.length)
  let from = 0
  while (from < common && old[from] === now[from]) from++
  let end = 0
  while (end < common - from && old[old.length - 1 - end] === now[now.length - 1 - end]) end++
  return { from, to: now.length - end }
}
