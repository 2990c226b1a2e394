/**
 * Yields arriving bytes in chunks of `sizeBytes`, the last one shorter. All use one buffer, so a chunk is valid until
 * the next one is requested.
 */
export async function* inChunks(source: AsyncIterable<Uint8Array>, sizeBytes: number): AsyncGenerator<Buffer> {
  const chunk = Buffer.allocUnsafeSlow(sizeBytes)
  let length = 0
  for await (const piece of source) {
    for (let from = 0; from < piece.length; ) {
      const taken = piece.subarray(from, from + sizeBytes - length)
      chunk.set(taken, length)
      from += taken.length
      length += taken.length
      if (length < sizeBytes) continue
      yield chunk
      length = 0
    }
  }
  if (length > 0) yield chunk.subarray(0, length)
}
