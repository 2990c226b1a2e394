import { newestOfLargest } from './newest-of-largest.ts'

/** Holder of a place. `cut` ends its work where another owner needs the place. */
type Holder = { owner: string; cut(): void }

/** Places of a process that clients hold without a time limit. At the limit, a place of the largest owner is freed. */
export type OwnerPlaces = {
  /**
   * Takes a place. Returns a function that gives it back, or the limit that is reached. When all are taken, the newest
   * holder of the largest owner is cut off; if this owner is the largest, it is refused.
   */
  take(holder: Holder): (() => void) | 'all' | 'own'
}

export function createOwnerPlaces(max: number, maxOfOwner: number): OwnerPlaces {
  const byOwner = new Map<string, Set<Holder>>()
  let size = 0
  const leave = (holder: Holder) => {
    const own = byOwner.get(holder.owner)
    if (!own?.delete(holder)) return
    size--
    if (own.size === 0) byOwner.delete(holder.owner)
  }
  return {
    take: ({ owner, cut }) => {
      const holder = { owner, cut }
      if ((byOwner.get(owner)?.size ?? 0) >= maxOfOwner) return 'own'
      const newest = size < max ? undefined : newestOfLargest(byOwner, owner)
      if (size >= max && newest === undefined) return 'all'
      if (newest !== undefined) leave(newest)
      newest?.cut()
      size++
      byOwner.set(owner, (byOwner.get(owner) ?? new Set()).add(holder))
      return () => leave(holder)
    },
  }
}
