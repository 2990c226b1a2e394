import type { Deps } from '../deps.ts'

/** Bytes of a row of image_chunks. A reader makes no use of it, so it can change. */
export const CHUNK_BYTES = 256 * 1024

/** Stores the bytes of an image from the byte `start` on. */
export async function insertChunk(deps: Deps, imageId: string, start: number, bytes: Buffer): Promise<void> {
  await deps.db.$executeRaw`
    INSERT INTO image_chunks (image_id, start, bytes) VALUES (${imageId}::uuid, ${start}, ${bytes})`
}

/** Reads an image's bytes from `start` up to but excluding `end`, one chunk at a time. Ends early when they are gone. */
export async function* readChunks(
  deps: Deps,
  imageId: string,
  start: number,
  end: number,
): AsyncGenerator<Uint8Array, undefined> {
  for (let at = start; at < end; ) {
    const chunk = await deps.db.imageChunk.findFirst({
      where: { imageId, start: { lte: at } },
      orderBy: { start: 'desc' },
    })
    const bytes = chunk?.bytes.subarray(at - chunk.start, end - chunk.start)
    if (bytes === undefined || bytes.length === 0) return undefined
    yield bytes
    at += bytes.length
  }
  return undefined
}

/** Returns an image's bytes in one buffer; undefined when the image has been deleted meanwhile. */
export async function readWhole(deps: Deps, imageId: string, sizeBytes: number): Promise<Buffer | undefined> {
  const whole = Buffer.allocUnsafeSlow(sizeBytes)
  let at = 0
  for await (const bytes of readChunks(deps, imageId, 0, sizeBytes)) {
    whole.set(bytes, at)
    at += bytes.length
  }
  return at === sizeBytes ? whole : undefined
}
