import { createHash } from 'node:crypto'
import type { ImageResult } from './fit-image.ts'

/** Images as models were lately given them: each model call of a session would load and scale the same ones again. */
export type ImageCache = {
  get(organizationId: string, source: string): ImageResult | undefined
  set(organizationId: string, source: string, result: ImageResult): void
}

const MAX_BYTES = 64 * 1024 * 1024
/** Size of an entry beside its base64, so that failures are bounded too. */
const ENTRY_BYTES = 1024
const IMAGE_TTL_MS = 10 * 60_000
const PROBLEM_TTL_MS = 30_000

type Entry = { result: ImageResult; endsAt: number; sizeBytes: number }

/** Creates a cache of a process. Beyond 64 MiB it forgets the entries that were not used for the longest time. */
export function createImageCache(): ImageCache {
  const entries = new Map<string, Entry>()
  let sizeBytes = 0
  const remove = (key: string) => {
    sizeBytes -= entries.get(key)?.sizeBytes ?? 0
    entries.delete(key)
  }
  const add = (key: string, entry: Entry) => {
    remove(key)
    entries.set(key, entry)
    sizeBytes += entry.sizeBytes
    for (const oldest of entries.keys()) {
      if (sizeBytes <= MAX_BYTES) return
      remove(oldest)
    }
  }
  return {
    get(organizationId, source) {
      const key = keyOf(organizationId, source)
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      remove(key)
      if (entry.endsAt <= performance.now()) return undefined
      add(key, entry)
      return entry.result
    },
    set(organizationId, source, result) {
      const isImage = 'base64' in result
      add(keyOf(organizationId, source), {
        result,
        endsAt: performance.now() + (isImage ? IMAGE_TTL_MS : PROBLEM_TTL_MS),
        sizeBytes: ENTRY_BYTES + (isImage ? result.base64.length : 0),
      })
    },
  }
}

/** Hashed, because an address may be as long as a message. */
const keyOf = (organizationId: string, source: string): string =>
  createHash('sha256').update(`${organizationId} ${source}`).digest('base64')
