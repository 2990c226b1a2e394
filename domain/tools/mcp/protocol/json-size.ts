/** Whether a value of parsed JSON has at most `maxDepth` levels of objects and lists. Works without recursion. */
export function isWithinDepth(value: unknown, maxDepth: number): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; depth <= maxDepth; depth++) {
    const next: unknown[] = []
    for (const one of level) {
      if (typeof one === 'object' && one !== null) for (const part of Object.values(one)) next.push(part)
    }
    const hasContainers = level.some((one) => typeof one === 'object' && one !== null)
    if (!hasContainers) return true
    level = next
  }
  return false
}

/** Returns the JSON text of a value, or undefined if it is deeper than `maxDepth` levels or longer than `maxBytes`. */
export function boundedJson(value: unknown, { maxBytes, maxDepth }: { maxBytes: number; maxDepth: number }) {
  if (!isWithinDepth(value, maxDepth)) return undefined
  const json = JSON.stringify(value)
  return json === undefined || Buffer.byteLength(json) > maxBytes ? undefined : json
}
