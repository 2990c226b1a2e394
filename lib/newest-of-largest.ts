/**
 * Finds the entry to refuse when all places are taken: the newest of the largest owner. Undefined when `owner`, who
 * wants one more, would be the largest. An owner's entries are in the order of their arrival.
 */
export function newestOfLargest<Entry>(byOwner: ReadonlyMap<string, Set<Entry>>, owner: string): Entry | undefined {
  const own = byOwner.get(owner)?.size ?? 0
  let largest = new Set<Entry>()
  for (const entries of byOwner.values()) if (entries.size > largest.size) largest = entries
  return largest.size > own + 1 ? [...largest].at(-1) : undefined
}
