import { isRecord } from '../../../../lib/is-record.ts'
import { LimitError } from '../protocol/failure.ts'
import { MAX_CONTENT_BYTES } from '../protocol/limits.ts'
import { cleaned, mimeTypeOf, textIn } from './read-pages.ts'

type Fields = Record<string, unknown>
const MAX_PARTS = 1_000
const MAX_URI_BYTES = 2048
const TYPES = ['text', 'image', 'audio', 'resource', 'resource_link'] as const

/** Content of a resource: text, or bytes in base64. */
export type McpContent = {
  uri: string
  mime_type: string | undefined
  text: string | undefined
  blob: string | undefined
}
/** Part of a prompt. A resource has the fields of `McpContent`, and an image or audio `data` in base64. */
export type McpPart = Partial<McpContent> & {
  type: (typeof TYPES)[number]
  name: string | undefined
  data: string | undefined
}
export type McpMessage = { role: 'user' | 'assistant'; content: McpPart }

const against = () => new LimitError('sent a result that the protocol does not allow.')

/** Reads a list of a result. Throws `LimitError` for anything else. */
export function partsOf<T>(value: unknown, toPart: (fields: Fields) => T): T[] {
  if (!Array.isArray(value)) throw against()
  if (value.length > MAX_PARTS) throw new LimitError(`sent more than ${MAX_PARTS} parts.`)
  const parts = value.map((part) => toPart(isRecord(part) ? part : {}))
  if (Buffer.byteLength(JSON.stringify(parts)) > MAX_CONTENT_BYTES)
    throw new LimitError('sent more than 1 MiB of JSON.')
  return parts
}

export function toContent(fields: Fields): McpContent {
  const uri = textIn(fields.uri, MAX_URI_BYTES)
  const [text, blob] = [longText(fields.text), longText(fields.blob)]
  if (uri === undefined || (text === undefined) === (blob === undefined)) throw against()
  return { uri, mime_type: mimeTypeOf(fields), text, blob }
}

export function toMessage({ role, content }: Fields): McpMessage {
  if ((role !== 'user' && role !== 'assistant') || !isRecord(content)) throw against()
  return { role, content: toPart(content) }
}

function toPart(fields: Fields): McpPart {
  const type = TYPES.find((known) => known === fields.type)
  if (type === undefined) throw against()
  const resource = isRecord(fields.resource) ? fields.resource : {}
  const own = { uri: textIn(fields.uri, MAX_URI_BYTES), mime_type: mimeTypeOf(fields), text: longText(fields.text) }
  const shown = type === 'resource' ? toContent(resource) : own
  return { type, name: textIn(fields.name, MAX_URI_BYTES), data: longText(fields.data), ...shown }
}

const longText = (value: unknown): string | undefined => (typeof value === 'string' ? cleaned(value) : undefined)
