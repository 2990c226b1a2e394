/** Places of a process that owners share: owners with many leave room for owners with few. */
export type Shares = {
  /** Takes a place. Undefined when the owner gets none now; otherwise a function that gives it back, to be called once. */
  take(owner: string): (() => void) | undefined
  /** Takes a place even beyond the owner's share, for work that must not wait. */
  takeAnyway(owner: string): () => void
  heldBy(owner: string): number
}

/** Free places that are kept for others, for each place that an owner has. */
const KEPT_PER_PLACE = 5
/** Part of all places that is kept for others at most. */
const KEPT_PART = 0.2

/**
 * Creates shares of a number of places. An owner who has none gets a place as long as there is any. The more an owner
 * has, the more places have to remain free, up to a fifth of all: so one owner alone gets four fifths.
 */
export function createShares(places: number): Shares {
  const held = new Map<string, number>()
  const most = places * KEPT_PART
  let free = places
  const heldBy = (owner: string) => held.get(owner) ?? 0
  const change = (owner: string, by: 1 | -1) => {
    free -= by
    const left = heldBy(owner) + by
    if (left === 0) held.delete(owner)
    else held.set(owner, left)
  }
  const takeAnyway = (owner: string) => {
    change(owner, 1)
    return () => change(owner, -1)
  }
  return {
    take: (owner) => (free > Math.min(heldBy(owner) * KEPT_PER_PLACE, most) ? takeAnyway(owner) : undefined),
    takeAnyway,
    heldBy,
  }
}
