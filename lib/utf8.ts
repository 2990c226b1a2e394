/** Returns the start of the UTF-8 character that has the byte at `at`: a place to cut. */
export function characterStart(bytes: Uint8Array, at: number): number {
  let start = Math.min(at, bytes.length)
  while (start > 0 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--
  return start
}
