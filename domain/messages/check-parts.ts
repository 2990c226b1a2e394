import type { InputContentPart } from '../../contract/messages.ts'
import { invalid } from '../kit/errors.ts'

/** Checks what the contract's types cannot express about a message's parts. Throws `invalid`, naming `field`. */
export function checkParts(content: InputContentPart[], field: string): void {
  content.forEach((part, index) => {
    if (part.type !== 'image') return
    const at = `${field}.${index}`
    if (!part.url && !part.base64) throw invalid(`${at}: must have url, or base64 with media_type`)
    if (part.base64 && !part.media_type) throw invalid(`${at}.media_type: is required with base64`)
    if (part.base64 && !/^[A-Za-z0-9+/]+={0,2}$/.test(part.base64)) throw invalid(`${at}.base64: must be base64`)
  })
}
