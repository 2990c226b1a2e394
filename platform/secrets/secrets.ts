import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { type SecretPlace, type Secrets, UnreadableSecret } from '../../domain/kit/secrets.ts'
import { type EncryptionKey, KEY_ID_BYTES, type KeyRing } from './encryption-key.ts'

const CIPHER = 'aes-256-gcm'
const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Length of the version and key id at the start of every secret. */
export const HEADER_BYTES = 1 + KEY_ID_BYTES
const MIN_BYTES = HEADER_BYTES + NONCE_BYTES + TAG_BYTES

/**
 * Encrypts with AES-256-GCM. A secret is stored as version, key id, nonce, ciphertext and tag; the tag also covers the
 * place.
 */
export function createSecrets({ current, previous }: KeyRing): Secrets {
  const keys = new Map([current, ...previous].map((key) => [key.id, key]))
  return {
    encrypt: (text, place) => encrypt(current, text, place),
    decrypt: (bytes, place) => {
      const keyId = keyIdOf(bytes)
      if (keyId === undefined || bytes.length < MIN_BYTES) throw unknownForm()
      const key = keys.get(keyId)
      if (key === undefined) throw unknownKey(keyId)
      return decrypt(key, bytes, place)
    },
  }
}

/** Reads the key id of a secret, or of its beginning. Undefined for bytes of another format. */
export const keyIdOf = (bytes: Uint8Array): string | undefined =>
  bytes.length < HEADER_BYTES || bytes[0] !== VERSION
    ? undefined
    : Buffer.from(bytes.subarray(1, HEADER_BYTES)).toString('hex')

/** Returns the beginning of every secret that the key encrypts. */
export const headerOf = ({ id }: EncryptionKey): Buffer<ArrayBuffer> =>
  Buffer.concat([Buffer.of(VERSION), Buffer.from(id, 'hex')])

function encrypt(key: EncryptionKey, text: string, place: SecretPlace): Uint8Array<ArrayBuffer> {
  const header = headerOf(key)
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key.key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(boundData(header, place))
  return Buffer.concat([header, nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
}

function decrypt(key: EncryptionKey, bytes: Uint8Array, place: SecretPlace): string {
  const body = HEADER_BYTES + NONCE_BYTES
  const decipher = createDecipheriv(CIPHER, key.key, bytes.subarray(HEADER_BYTES, body), { authTagLength: TAG_BYTES })
  decipher.setAAD(boundData(headerOf(key), place))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  const start = decipher.update(bytes.subarray(body, -TAG_BYTES))
  try {
    return Buffer.concat([start, decipher.final()]).toString('utf8')
  } catch {
    throw changed(key.id)
  }
}

const boundData = (header: Uint8Array, place: SecretPlace): Buffer => Buffer.concat([header, Buffer.from(place)])

const unknownForm = () =>
  new UnreadableSecret(
    'A stored secret is cut off, or in a form that this release does not know: set it again, or update this process.',
    { isDamaged: false },
  )

const unknownKey = (id: string) =>
  new UnreadableSecret(
    `A stored secret needs the key ${id}, which this process does not have: add that key to ` +
      'SECRETS_ENCRYPTION_KEY_PREVIOUS, and restart.',
    { isDamaged: false },
  )

const changed = (id: string) =>
  new UnreadableSecret(
    `A stored secret under the key ${id} was changed or moved to another row, and no key, not even one in ` +
      'SECRETS_ENCRYPTION_KEY_PREVIOUS, can read it: restore the row or set the secret again.',
    { isDamaged: true },
  )
