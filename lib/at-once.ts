/** Runs `work` on each item, at most `most` at once, until `isOver` says so. Rejects when one rejects. */
export async function atOnce<T>(
  items: Iterable<T>,
  most: number,
  work: (item: T) => Promise<unknown>,
  isOver = () => false,
): Promise<void> {
  const queue = items[Symbol.iterator]()
  const drain = async () => {
    for (let next = queue.next(); !next.done && !isOver(); next = queue.next()) await work(next.value)
  }
  await Promise.all(Array.from({ length: most }, drain))
}
