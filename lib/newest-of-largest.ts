/**
 * Finds what is refused where all places are taken: the newest entry of the owner who has most. Undefined when `owner`,
 * who wants one more, would then be that owner. The entries of an owner are in the order in which they came.
 */
export function newestOfLargest<Entry>(byOwner: ReadonlyMap<string, Set<Entry>>, owner: string): Entry | undefined {
  const own = byOwner.get(owner)?.size ?? 0
  let largest = new Set<Entry>()
  for (const entries of byOwner.values()) if (entries.size > largest.size) largest = entries
  return largest.size > own + 1 ? [...largest].at(-1) : undefined
}
