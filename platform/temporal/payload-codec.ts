import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import proto from '@temporalio/proto'
import { type Payload, type Sealing, UnreadablePayload } from '../../domain/tools/task-queues/sealing.ts'

/**
 * The encryption of Temporal's sample codecs, in all its languages: a payload with the encoding `binary/encrypted`, whose
 * data is a nonce, and the serialized payload encrypted by AES-256-GCM, with its tag.
 * https://github.com/temporalio/samples-typescript/tree/main/encryption
 */
const ENCRYPTED = 'binary/encrypted'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const ALGORITHM = 'aes-256-gcm'

const { Payload: PayloadMessage } = proto.temporal.api.common.v1

export const sealing: Sealing = {
  seal: (value, { name, key }) => {
    const plain = PayloadMessage.encode({
      metadata: { encoding: Buffer.from('json/plain') },
      data: Buffer.from(JSON.stringify(value)),
    }).finish()
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
    const data = Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
    return { metadata: { encoding: Buffer.from(ENCRYPTED), 'encryption-key-id': Buffer.from(name) }, data }
  },
  open: (payload, { key }) => {
    if (encodingOf(payload) !== ENCRYPTED) throw new UnreadablePayload('The answer of the worker is not encrypted.')
    const { data: bytes = new Uint8Array(), ...plain } = decrypt(payload.data ?? new Uint8Array(), key)
    const encoding = encodingOf(plain)
    if (encoding === 'binary/null') return undefined
    if (encoding !== 'json/plain') throw new UnreadablePayload('The answer of the worker is not JSON.')
    try {
      return JSON.parse(Buffer.from(bytes ?? []).toString())
    } catch {
      throw new UnreadablePayload('The answer of the worker is not JSON.')
    }
  },
}

const encodingOf = ({ metadata }: Payload): string => Buffer.from(metadata?.encoding ?? []).toString()

function decrypt(bytes: Uint8Array, key: Uint8Array): Payload {
  try {
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    const plain = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
    return PayloadMessage.decode(plain)
  } catch {
    throw new UnreadablePayload("The answer of the worker cannot be decrypted with its task queue's key.")
  }
}
