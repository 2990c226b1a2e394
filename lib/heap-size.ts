const OBJECT_BYTES = 64
/** Size of a field beside its name and value. Objects with the same names share them, others take more. */
const FIELD_BYTES = 32
const ITEM_BYTES = 16
const STRING_BYTES = 24
const TWO_BYTES = /[^\0-\xff]/

/** Estimates the memory that a value of parsed JSON takes, in bytes: about half to twice as much as V8 needs. */
export function estimateHeapBytes(value: unknown): number {
  let sizeBytes = 0
  const open = [value]
  while (open.length > 0) {
    const part = open.pop()
    if (typeof part === 'string') sizeBytes += stringBytes(part)
    if (typeof part !== 'object' || part === null) continue
    sizeBytes += OBJECT_BYTES
    const isArray = Array.isArray(part)
    for (const [name, inner] of Object.entries(part)) {
      sizeBytes += isArray ? ITEM_BYTES : FIELD_BYTES + name.length
      open.push(inner)
    }
  }
  return sizeBytes
}

const stringBytes = (text: string): number => STRING_BYTES + text.length * (TWO_BYTES.test(text) ? 2 : 1)
