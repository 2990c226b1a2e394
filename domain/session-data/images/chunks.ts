import { createFairQueue } from '../../../lib/fair-queue.ts'
import type { Deps } from '../deps.ts'

/**
 * Bytes of a row of image_chunks. Its text in the driver stays below V8's limit for large objects (128 KiB), which are
 * freed late. Readers do not depend on it, so it can change.
 */
export const CHUNK_BYTES = 48 * 1024

/** Number of chunks written at once. Each takes several times its size until Postgres has it. */
const WRITTEN_AT_ONCE = 4
const queue = createFairQueue(WRITTEN_AT_ONCE, Number.POSITIVE_INFINITY, { maxWaiting: Number.POSITIVE_INFINITY })

/** Stores the bytes of an image from the byte `start` on, when their turn comes. */
export const insertChunk = (deps: Deps, imageId: string, start: number, bytes: Buffer): Promise<void> =>
  queue.run({}, () => deps.imageChunks.insert(imageId, start, bytes))

/**
 * Reads an image's bytes from `start` up to but excluding `end`, one chunk at a time. Ends early if they are deleted.
 */
export async function* readChunks(
  deps: Deps,
  imageId: string,
  start: number,
  end: number,
): AsyncGenerator<Uint8Array, undefined> {
  for (let at = start; at < end; ) {
    const chunk = await deps.imageChunks.find(imageId, at)
    const bytes = chunk?.bytes.subarray(at - chunk.start, end - chunk.start)
    if (bytes === undefined || bytes.length === 0) return undefined
    yield bytes
    at += bytes.length
  }
  return undefined
}

/** Returns an image's bytes in one buffer; undefined if the image has been deleted meanwhile. */
export async function readWhole(
  deps: Deps,
  imageId: string,
  sizeBytes: number,
): Promise<Buffer<ArrayBuffer> | undefined> {
  const whole = Buffer.allocUnsafeSlow(sizeBytes)
  let at = 0
  for await (const bytes of readChunks(deps, imageId, 0, sizeBytes)) {
    whole.set(bytes, at)
    at += bytes.length
  }
  return at === sizeBytes ? whole : undefined
}
