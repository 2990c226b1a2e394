import { isRecord } from '../../../../lib/is-record.ts'

/** Matches data lines whose chunk may need a repair, without parsing them. */
const MAY_NEED_REPAIR = /"(?:tool_calls|usage)"/

/**
 * Returns a function that repairs a Chat Completions event stream: chunks that the SDK's schema would refuse although
 * their meaning is clear, such as tool calls without an `index` or with an object as `arguments`, and invalid counts of
 * tokens. It takes whole lines. Everything else stays unchanged.
 */
export function createRepair(): (lines: string) => string {
  const calls = createCallIndex()
  return (lines) => {
    if (!MAY_NEED_REPAIR.test(lines)) return lines
    return lines.replaceAll(/(^|[\r\n])(data: ?)([^\r\n]*)/g, (_line, start: string, field: string, data: string) => {
      return start + field + (MAY_NEED_REPAIR.test(data) ? repairData(data, calls) : data)
    })
  }
}

function repairData(data: string, calls: CallIndex): string {
  const chunk = parseChunk(data)
  if (!isRecord(chunk) || !Array.isArray(chunk.choices)) return data
  for (const [position, choice] of chunk.choices.entries()) {
    if (isRecord(choice)) repairChoice(choice, position, calls)
  }
  repairUsage(chunk)
  return JSON.stringify(chunk)
}

function parseChunk(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    // Python's json module writes these words for numbers that JSON does not have.
    return parseOrUndefined(data.replaceAll(/:\s*(?:NaN|-?Infinity)(?=\s*[,}])/g, ':null'))
  }
}

function parseOrUndefined(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}

function repairChoice(choice: Record<string, unknown>, position: number, calls: CallIndex): void {
  choice.index ??= position
  const { delta } = choice
  if (!isRecord(delta) || !Array.isArray(delta.tool_calls)) return
  if (delta.role !== 'assistant') delete delta.role
  delta.tool_calls = delta.tool_calls.filter(isRecord).map((call) => repairCall(call, calls))
}

function repairCall(call: Record<string, unknown>, calls: CallIndex): object {
  const given = isRecord(call.function) ? call.function : {}
  const written = given.arguments ?? undefined
  return {
    ...call,
    index: calls.of(call, typeof given.name === 'string' && given.name !== ''),
    type: 'function',
    function: {
      ...given,
      ...(written === undefined || typeof written === 'string' ? {} : { arguments: JSON.stringify(written) }),
    },
  }
}

type CallIndex = ReturnType<typeof createCallIndex>

/**
 * Finds the call that a fragment of an answer belongs to: by its index, else by its id. A fragment without both starts
 * a new call if it has a name, else it continues the latest one.
 */
function createCallIndex() {
  const byId = new Map<string, number>()
  let latest = 0
  let next = 0
  const find = (id: string | undefined, isNamed: boolean) => {
    if (id !== undefined) return byId.get(id) ?? next
    return isNamed ? next : latest
  }
  return {
    of: (call: Record<string, unknown>, isNamed: boolean): number => {
      const id = typeof call.id === 'string' && call.id.trim() !== '' ? call.id : undefined
      latest = toIndex(call.index) ?? find(id, isNamed)
      next = Math.max(next, latest + 1)
      if (id !== undefined && !byId.has(id)) byId.set(id, latest)
      return latest
    },
  }
}

function toIndex(value: unknown): number | undefined {
  const index = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value
  return typeof index === 'number' && Number.isSafeInteger(index) && index >= 0 ? index : undefined
}

/** Removes invalid counts from the usage and its details, so that they count as missing. */
function repairUsage(chunk: Record<string, unknown>): void {
  if (chunk.usage === undefined || chunk.usage === null) return
  const usage = isRecord(chunk.usage) ? chunk.usage : {}
  const details = Object.entries(usage).filter(([, value]) => isRecord(value))
  chunk.usage = {
    ...onlyCounts(usage),
    ...Object.fromEntries(details.map(([key, value]) => [key, onlyCounts(Object(value))])),
  }
}

const onlyCounts = (counts: Record<string, unknown>): object =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => Number.isFinite(count)))
