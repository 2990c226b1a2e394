import { createHash } from 'node:crypto'
import { createBoundedCache } from '../../lib/bounded-cache.ts'
import type { ImageResult } from './fit-image.ts'

/**
 * Images as models recently received them. Without it, each model call of a session would load and scale them again.
 */
export type ImageCache = {
  get(organizationId: string, source: string): ImageResult | undefined
  set(organizationId: string, source: string, result: ImageResult): void
}

const MAX_BYTES = 64 * 1024 * 1024
/** Size of an entry without its base64, so that failures are bounded too. */
const ENTRY_BYTES = 1024
const IMAGE_TTL_MS = 10 * 60_000
const PROBLEM_TTL_MS = 30_000

/** Creates the cache of a process. Beyond 64 MiB it evicts the least recently used entries. */
export function createImageCache(): ImageCache {
  const cache = createBoundedCache<ImageResult>(MAX_BYTES)
  return {
    get: (organizationId, source) => cache.get(keyOf(organizationId, source)),
    set: (organizationId, source, result) => {
      const isImage = 'base64' in result
      cache.set(keyOf(organizationId, source), result, {
        sizeBytes: ENTRY_BYTES + (isImage ? result.base64.length : 0),
        ttlMs: isImage ? IMAGE_TTL_MS : PROBLEM_TTL_MS,
      })
    },
  }
}

/** Hashed, because an address may be as long as a message. */
const keyOf = (organizationId: string, source: string): string =>
  createHash('sha256').update(`${organizationId} ${source}`).digest('base64')
