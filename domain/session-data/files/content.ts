import { isUtf8 } from 'node:buffer'
import type { FileEncoding } from '../../../contract/files.ts'
import { DomainError, invalid } from '../../kit/errors.ts'

/** Content of a file to write. */
export type FileContent = { bytes: Buffer; isBase64: boolean }

/** Number of first bytes in which a NUL marks a binary file. */
const LOOKED_AT = 8192

/** Whether bytes can be returned as text. */
export const isText = (bytes: Uint8Array): boolean => !bytes.subarray(0, LOOKED_AT).includes(0) && isUtf8(bytes)

/** Content of a request: bytes, or text in one of the encodings. */
export type GivenContent = {
  bytes?: Buffer | undefined
  content?: string | null | undefined
  encoding?: FileEncoding | null | undefined
}

/** Returns the content of a request, empty by default. Throws as `parseContent` does. */
export function contentOf(maxBytes: number, { bytes, content, encoding }: GivenContent): FileContent {
  if (bytes === undefined) return parseContent(maxBytes, content ?? '', encoding ?? 'text')
  if (bytes.length > maxBytes) throw tooLarge(maxBytes, bytes.length)
  return { bytes, isBase64: !isText(bytes) }
}

const tooLarge = (maxBytes: number, sizeBytes: number) =>
  new DomainError('too_large', `content: must be at most ${maxBytes} bytes, and has ${sizeBytes}`)

/** Returns the content of a tool call. Throws `invalid` for bad base64, and `too_large`. */
export function parseContent(maxBytes: number, content: string, encoding: FileEncoding): FileContent {
  const isBase64 = encoding === 'base64'
  if (isBase64 && !(content.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(content))) {
    throw invalid('content: must be base64 with padding and without line breaks')
  }
  const sizeBytes = Buffer.byteLength(content, isBase64 ? 'base64' : 'utf8')
  if (sizeBytes > maxBytes) throw tooLarge(maxBytes, sizeBytes)
  const bytes = Buffer.from(content, isBase64 ? 'base64' : 'utf8')
  return { bytes, isBase64: isBase64 || !isText(bytes) }
}
