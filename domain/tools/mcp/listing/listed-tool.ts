import { withoutHidden, withoutSmuggled } from '../../../../lib/hidden-text.ts'
import { isRecord } from '../../../../lib/is-record.ts'
import type { Discovered, ListedTool } from '../protocol/client.ts'
import type { RedactCredentials } from '../protocol/credentials.ts'
import { readHeaderParams } from '../protocol/header-params.ts'
import { boundedJson } from '../protocol/json-size.ts'
import { MAX_LEFT_OUT, MAX_TOOLS, MAX_TOOLS_BYTES } from '../protocol/limits.ts'
import { cutToBytes, toLine } from '../protocol/text.ts'

const MAX_NAME_LENGTH = 255
const MAX_TITLE_BYTES = 256
const MAX_DESCRIPTION_BYTES = 1024
const SCHEMA = { maxBytes: 32 * 1024, maxDepth: 64 }

/** Collects the tools of a list, within its limits. */
export function createToolList(redact: RedactCredentials) {
  const tools = new Map<string, ListedTool>()
  const leftOut: Discovered['leftOut'] = []
  let sizeBytes = 0
  const leave = (name: string, reason: string) => {
    if (leftOut.length < MAX_LEFT_OUT) leftOut.push({ name, reason })
  }
  const excess = (name: string, size: number): string | undefined => {
    if (tools.has(name)) return 'another tool has the same name'
    if (tools.size === MAX_TOOLS) return `a server can have ${MAX_TOOLS} tools`
    if (sizeBytes + size <= MAX_TOOLS_BYTES) return undefined
    return `the tools of a server can have ${MAX_TOOLS_BYTES / 1024} KiB of JSON together`
  }
  return {
    leftOut,
    leave,
    tools: () => [...tools.values()],
    add(value: unknown): void {
      const listed = toListedTool(value, redact)
      const size = Buffer.byteLength(JSON.stringify(listed))
      const reason = 'reason' in listed ? listed.reason : excess(listed.name, size)
      if ('reason' in listed || reason !== undefined) {
        leave(listed.name, `${reason}`)
        return
      }
      sizeBytes += size
      tools.set(listed.name, listed)
    },
  }
}

/** Reads a tool of a list. Returns the reason if it is unusable. */
function toListedTool(value: unknown, redact: RedactCredentials): ListedTool | { name: string; reason: string } {
  const tool = redact(isRecord(value) ? value : {})
  const { name, title, description, inputSchema } = tool
  if (typeof name !== 'string' || name === '') return { name: '', reason: 'it has no name' }
  if (name.length > MAX_NAME_LENGTH || !name.isWellFormed() || name.includes('\0')) {
    return { name: toLine(cutToBytes(name, MAX_NAME_LENGTH)), reason: 'its name is too long or no text' }
  }
  if (isRecord(value) && value.name !== name) return { name, reason: 'its name has credentials of the server in it' }
  // As a key it would set an object's prototype.
  if (name === '__proto__') return { name, reason: 'its name is reserved' }
  if (isRecord(tool.execution) && tool.execution.taskSupport === 'required') {
    return { name, reason: 'it can be called as a task only, which is not supported' }
  }
  if (!isRecord(inputSchema) || inputSchema.type !== 'object')
    return { name, reason: 'its input schema is not an object' }
  const bounded = boundedJson(inputSchema, SCHEMA)
  if (bounded === undefined) return { name, reason: 'its input schema has more than 32 KiB of JSON or 64 levels' }
  if (readHeaderParams(inputSchema) === 'invalid')
    return { name, reason: 'it wants arguments in headers (x-mcp-header) that cannot be' }
  const json = withoutHidden(bounded) === bounded ? bounded : JSON.stringify(JSON.parse(bounded, inWords))
  if (withoutSmuggled(json) !== json) return { name, reason: 'its input schema has text that nobody can see' }
  const annotations = isRecord(tool.annotations) ? tool.annotations : {}
  return {
    name,
    title: textUpTo(title ?? annotations.title, MAX_TITLE_BYTES),
    description: textUpTo(description, MAX_DESCRIPTION_BYTES) ?? '',
    inputSchema: json === bounded ? inputSchema : JSON.parse(json),
    isReadOnly: annotations.readOnlyHint === true,
    isIdempotent: annotations.idempotentHint === true,
  }
}

/** Reads the words of a schema without what people could not see. Its values go back to the server as they are. */
const inWords = (key: string, value: unknown): unknown =>
  typeof value === 'string' && /^(title|description)$/.test(key) ? withoutHidden(value) : value

const textUpTo = (value: unknown, maxBytes: number): string | undefined =>
  typeof value === 'string' && value !== ''
    ? cutToBytes(withoutHidden(value.replaceAll('\0', '')), maxBytes).toWellFormed()
    : undefined
