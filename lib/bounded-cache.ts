/** Cache of a process, bounded in bytes. */
export type BoundedCache<Value> = {
  get(key: string): Value | undefined
  /** Keeps a value for `ttlMs`, unless more recently used ones need its room. */
  set(key: string, value: Value, size: { sizeBytes: number; ttlMs: number }): void
  delete(key: string): void
}

type Entry<Value> = { value: Value; endsAt: number; sizeBytes: number }

/**
 * Creates a cache that forgets the least recently used entries beyond `maxBytes`, and expired ones with each new entry.
 */
export function createBoundedCache<Value>(maxBytes: number): BoundedCache<Value> {
  const entries = new Map<string, Entry<Value>>()
  let sizeBytes = 0
  const remove = (key: string) => {
    sizeBytes -= entries.get(key)?.sizeBytes ?? 0
    entries.delete(key)
  }
  const add = (key: string, entry: Entry<Value>) => {
    remove(key)
    entries.set(key, entry)
    sizeBytes += entry.sizeBytes
  }
  return {
    get(key) {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      if (entry.endsAt <= performance.now()) {
        remove(key)
        return undefined
      }
      add(key, entry)
      return entry.value
    },
    set(key, value, size) {
      const now = performance.now()
      add(key, { value, endsAt: now + size.ttlMs, sizeBytes: size.sizeBytes })
      for (const [oldest, { endsAt }] of entries) {
        if (sizeBytes <= maxBytes && endsAt > now) return
        remove(oldest)
      }
    },
    delete: remove,
  }
}
