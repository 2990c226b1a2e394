/** Runs `work` for all items, at most `limit` at once. True when all returned true. Rejects with the first failure. */
export async function inParallel<T>(items: T[], limit: number, work: (item: T) => Promise<boolean>): Promise<boolean> {
  const left = [...items]
  let all = true
  const runner = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) all = (await work(item)) && all
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, runner))
  return all
}
