import { ProtocolError } from '@modelcontextprotocol/client'
import { withoutSmuggled } from '../../../../lib/hidden-text.ts'
import { isRecord } from '../../../../lib/is-record.ts'
import type { VisitedServer } from '../protocol/client.ts'
import { HIDDEN } from '../protocol/credentials.ts'
import { LimitError } from '../protocol/failure.ts'
import { MAX_CONTENT_BYTES, MAX_ITEMS, MAX_PAGES } from '../protocol/limits.ts'
import { cutToBytes } from '../protocol/text.ts'

type Fields = Record<string, unknown>
/** List of a server. Incomplete if items were left out: too many, too large or malformed. */
export type Listed<T> = { items: T[]; isComplete: boolean }
export const NONE = { items: [], isComplete: true }
/** List to read: its method, the field of a page that has the items, and a check of an item. */
type List<T> = { method: string; key: string; toItem: (fields: Fields) => T | undefined }

const METHOD_NOT_FOUND = -32_601

/** Reads all pages of a list. Throws the library's errors, or `LimitError`. */
export async function readPages<T>(server: VisitedServer, { method, key, toItem }: List<T>): Promise<Listed<T>> {
  const listed: Listed<T> = { items: [], isComplete: true }
  let left = MAX_CONTENT_BYTES
  let cursor: string | undefined
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await server.ask(method, cursor === undefined ? {} : { cursor }).catch(orNothing)
    if (page === undefined) return listed
    const items = page[key]
    if (!Array.isArray(items)) throw new LimitError(`answered without a list of ${key}.`)
    for (const value of items) {
      const item = toItem(isRecord(value) ? value : {})
      const size = item === undefined ? 0 : Buffer.byteLength(JSON.stringify(item))
      if (listed.items.length === MAX_ITEMS || size > left) return { ...listed, isComplete: false }
      left -= size
      if (item === undefined) listed.isComplete = false
      else listed.items.push(item)
    }
    if (typeof page.nextCursor !== 'string') return listed
    cursor = page.nextCursor
  }
  return { ...listed, isComplete: false }
}

function orNothing(error: unknown): undefined {
  if (!(error instanceof ProtocolError) || error.code !== METHOD_NOT_FOUND) throw error
}

/** Reports whether a server does not know the thing that a request names. */
export const isUnknown = (error: unknown): error is ProtocolError =>
  error instanceof ProtocolError && UNKNOWN.includes(error.code)

/** Codes for an unknown method, invalid parameters, and a resource that was not found before 2026-07-28. */
const UNKNOWN = [METHOD_NOT_FOUND, -32_602, -32_002]

const MAX_TITLE_BYTES = 256
const MAX_DESCRIPTION_BYTES = 1024

/** Returns a text by which something is asked for. Undefined for a text that cannot be sent back as it is. */
export const keyOf = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[^\0]{1,2048}$/s.test(value) && value.isWellFormed() && !value.includes(HIDDEN)
    ? value
    : undefined

export const textIn = (value: unknown, maxBytes: number): string | undefined =>
  typeof value === 'string' && value !== '' ? cleaned(cutToBytes(value, maxBytes)) : undefined

/** Returns a text as it can be stored, and as people see it before they post it. */
export const cleaned = (text: string): string => withoutSmuggled(text.replaceAll('\0', ''))

/** Reads the texts that describe an item of any list. */
export const descriptionOf = ({ title, description }: Fields) => ({
  title: textIn(title, MAX_TITLE_BYTES),
  description: textIn(description, MAX_DESCRIPTION_BYTES),
})

export const mimeTypeOf = ({ mimeType }: Fields): string | undefined => textIn(mimeType, MAX_TITLE_BYTES)
export const nameOf = ({ name }: Fields): string => textIn(name, MAX_TITLE_BYTES) ?? ''
