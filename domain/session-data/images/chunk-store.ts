/** Chunks of images in Postgres. platform/postgres/image-chunks.ts implements them. */
export type ImageChunks = {
  /** Stores the bytes of an image from the byte `start` on. */
  insert(imageId: string, start: number, bytes: Buffer): Promise<void>
  /** Returns the chunk with the byte `at`, or the last one before it. */
  find(imageId: string, at: number): Promise<{ start: number; bytes: Buffer } | undefined>
}
