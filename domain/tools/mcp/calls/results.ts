import { imageTypeOf } from '../../../../lib/image-type.ts'
import { isRecord } from '../../../../lib/is-record.ts'
import { createJsonScan } from '../../../../lib/json-scan.ts'
import { storableText } from '../../../../lib/postgres-text.ts'
import { ToolError } from '../../capabilities/capability.ts'
import type { ToolOutput } from '../../capabilities/tool-output.ts'
import { LimitError } from '../protocol/failure.ts'
import { boundedJson } from '../protocol/json-size.ts'
import { cutToBytes, toLine } from '../protocol/text.ts'

const KiB = 1024
/** Together well below a result's limit of 2 MiB of JSON, escapes included. */
const MAX_TEXT_BYTES = 512 * KiB
const MAX_RESOURCES_BYTES = 512 * KiB
const STRUCTURED = { maxBytes: 512 * KiB, maxDepth: 64 }
const MAX_PARTS = 1_000
const MAX_PARTS_OF_JSON = 100_000
const MAX_NAMED = 100
const MAX_IMAGES = 10
const MAX_IMAGES_BYTES = 4 * KiB * KiB
const MAX_ERROR_LENGTH = 4_000
const MAX_URI_LENGTH = 2_048

type Image = NonNullable<ToolOutput['images']>[number]
type Resource = { uri: string; name?: string; mime_type?: string; text?: string }
type Parts = { texts: string[]; resources: Resource[]; omitted: string[]; images: Image[] }

/**
 * Converts a `tools/call` result to a tool's output without credentials: the parts that the model can use, and names of
 * the others. Throws `ToolError` with the tool's own text if it failed, and `LimitError` for anything but a result.
 */
export function toOutput(result: unknown, serverName: string): ToolOutput {
  if (!isRecord(result) || !(Array.isArray(result.content) || result.structuredContent !== undefined)) {
    throw new LimitError('sent a result that the protocol does not allow.')
  }
  const content: unknown[] = Array.isArray(result.content) ? result.content : []
  const parts = sort(content)
  const text = parts.texts.join('\n')
  if (result.isError === true) throw new ToolError(errorText(text, result.structuredContent, serverName))
  return withImages(toValue(parts, text, result.structuredContent), parts.images)
}

function toValue(parts: Parts, text: string, structured: unknown): unknown {
  const { texts, resources, omitted } = parts
  const rest = { ...(resources.length > 0 && { resources }), ...(omitted.length > 0 && { omitted }) }
  if (structured !== undefined) {
    const json = boundedJson(structured, STRUCTURED)
    if (json !== undefined) {
      const shown = !isSameJson(text, json) && text !== '' && { text: cut(text, MAX_TEXT_BYTES) }
      return { structured_content: structured, ...shown, ...rest }
    }
    name(omitted, 'structured content with more than 512 KiB or 64 levels')
    return { ...(text !== '' && { text: cut(text, MAX_TEXT_BYTES) }), ...rest, omitted }
  }
  if (texts.length === 1 && Object.keys(rest).length === 0) return cut(text, MAX_TEXT_BYTES)
  return { ...(texts.length > 0 && { text: cut(text, MAX_TEXT_BYTES) }), ...rest }
}

const withImages = (value: unknown, images: Image[]): ToolOutput =>
  images.length === 0 ? { value } : { value, images }

/** Sorts the parts of a result by use. */
function sort(content: unknown[]): Parts {
  const parts: Parts = { texts: [], resources: [], omitted: [], images: [] }
  const room = { images: MAX_IMAGES_BYTES, resources: MAX_RESOURCES_BYTES }
  for (const part of content.slice(0, MAX_PARTS)) {
    const omitted = add(parts, isRecord(part) ? part : {}, room)
    if (omitted !== undefined) name(parts.omitted, omitted)
  }
  if (content.length > MAX_PARTS) name(parts.omitted, `${content.length - MAX_PARTS} more parts`)
  return parts
}

type Part = Record<string, unknown>
type Room = { images: number; resources: number }

/** Adds a part to the list of its kind. Returns a name for an omitted part. */
function add(parts: Parts, part: Part, room: Room): string | undefined {
  if (part.type === 'image') return addImage(parts, part, room)
  if (part.type === 'resource') return addResource(parts, part, room)
  if (part.type === 'resource_link') return addLink(parts, part)
  if (typeof part.type !== 'string') return 'part without a type'
  if (part.type !== 'text' || typeof part.text !== 'string') return describe(part.type, part.mimeType, part.data)
  parts.texts.push(storableText(part.text))
  return undefined
}

function addImage(parts: Parts, { data, mimeType }: Part, room: Room): string | undefined {
  const bytes = Buffer.from(typeof data === 'string' ? data : '', 'base64')
  const type = imageTypeOf(bytes)
  const base64 = bytes.toString('base64')
  if (type === undefined) return describe('image of an unknown kind', mimeType, data)
  if (parts.images.length === MAX_IMAGES || base64.length > room.images) {
    return describe('image too many or too large', mimeType, data)
  }
  room.images -= base64.length
  parts.images.push({ type: 'image', base64, media_type: type })
  return undefined
}

function addResource(parts: Parts, part: Part, room: Room): string | undefined {
  const { uri, mimeType, text, blob } = isRecord(part.resource) ? part.resource : {}
  if (typeof uri !== 'string') return describe('resource without an address', mimeType, text ?? blob)
  const described = describe(`resource ${uri}`, mimeType, text ?? blob)
  if (typeof text !== 'string' || parts.resources.length === MAX_NAMED) return described
  const shown = cut(storableText(text), room.resources)
  room.resources = Math.max(0, room.resources - jsonBytes(shown))
  parts.resources.push({ ...place(uri, mimeType), text: shown })
  return undefined
}

function addLink(parts: Parts, { uri, name: title, mimeType }: Part): string | undefined {
  if (typeof uri !== 'string') return describe('link without an address', mimeType, undefined)
  if (parts.resources.length === MAX_NAMED) return describe(`link to ${uri}`, mimeType, undefined)
  const { uri: address, ...type } = place(uri, mimeType)
  parts.resources.push({ uri: address, ...(typeof title === 'string' && { name: toLine(title) }), ...type })
  return undefined
}

const place = (uri: string, mimeType: unknown) => ({
  uri: storableText(uri.slice(0, MAX_URI_LENGTH)),
  ...(typeof mimeType === 'string' && { mime_type: toLine(mimeType) }),
})

function describe(kind: string, mimeType: unknown, data: unknown): string {
  const type = typeof mimeType === 'string' ? `, ${toLine(mimeType)}` : ''
  const size = typeof data === 'string' ? `, ${Math.ceil((data.length * 3) / 4 / KiB)} KiB` : ''
  return `${toLine(kind)}${type}${size}`
}

function name(omitted: string[], what: string): void {
  if (omitted.length < MAX_NAMED) omitted.push(what)
}

const jsonBytes = (text: string) => Buffer.byteLength(JSON.stringify(text))

/** Shortens a text to fit as JSON, with a note. */
function cut(text: string, maxBytes: number): string {
  let length = maxBytes
  for (;;) {
    const kept = cutToBytes(text, length)
    if (kept.length === text.length && jsonBytes(kept) <= maxBytes) return kept
    const said = `${kept}\n[cut: ${kept.length} of ${text.length} characters]`
    const size = jsonBytes(said)
    if (size <= maxBytes || length === 0) return said
    // An escape takes up to six bytes of JSON per byte of text.
    length = Math.floor(Math.min(length * (maxBytes / size), length - 1) * 0.95)
  }
}

/** Whether a text repeats the structured content as JSON, as servers send it for older clients. */
function isSameJson(text: string, json: string): boolean {
  if (text.length > 4 * STRUCTURED.maxBytes) return false
  if (createJsonScan({ maxParts: MAX_PARTS_OF_JSON, maxDepth: STRUCTURED.maxDepth }).add(Buffer.from(text)))
    return false
  try {
    return boundedJson(JSON.parse(text), STRUCTURED) === json
  } catch {
    return false
  }
}

function errorText(text: string, structured: unknown, serverName: string): string {
  const json = text === '' && structured !== undefined ? boundedJson(structured, STRUCTURED) : undefined
  const words = json ?? text
  if (words === '') return `The tool of the MCP server "${toLine(serverName)}" failed and gave no reason.`
  return cutToBytes(words, MAX_ERROR_LENGTH)
}
