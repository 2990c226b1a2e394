const BATCH = 1000

/**
 * Repeats a statement that deletes at most `limit` rows until there are no more, and returns the number deleted. Throws
 * the signal's reason when it aborts.
 */
export async function deleteInBatches(
  signal: AbortSignal,
  deleteSome: (limit: number) => Promise<number>,
  limit = BATCH,
): Promise<number> {
  for (let deleted = 0; ; ) {
    signal.throwIfAborted()
    const count = await deleteSome(limit)
    deleted += count
    if (count < limit) return deleted
  }
}
