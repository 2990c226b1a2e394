import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

/** Key of stored secrets. The id is stored with each secret and may be shown; the object prints no bytes. */
export type EncryptionKey = { id: string; key: KeyObject }

/** Keys of one process. The current one encrypts, all of them decrypt. */
export type KeyRing = { current: EncryptionKey; previous: EncryptionKey[] }

export const KEY_ID_BYTES = 8
const ID_LABEL = 'agent-session-service id of a secrets key'
const HEX = /^[0-9a-f]{64}$/i
/** Form of 32 bytes in base64. The last letter carries four bits only. */
const BASE64 = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

/** Tells whether the text of a variable is a key of 32 bytes. */
export const isKeyText = (text: string): boolean => HEX.test(text) || BASE64.test(text)

/** Reads a key whose form `isKeyText` has checked. */
export const keyFromText = (text: string): EncryptionKey =>
  keyFromBytes(Buffer.from(text, HEX.test(text) ? 'hex' : 'base64'))

export const keyFromBytes = (bytes: Uint8Array): EncryptionKey => ({
  id: createHmac('sha256', bytes).update(ID_LABEL).digest().toString('hex', 0, KEY_ID_BYTES),
  key: createSecretKey(bytes),
})
