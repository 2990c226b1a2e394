/** Payload codec of a task queue: AES-256-GCM under the key that the queue was registered with. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { Payload, PayloadCodec } from '@temporalio/common'
import proto from '@temporalio/proto'

const { Payload: PayloadMessage } = proto.temporal.api.common.v1

export function createCodec(taskQueue: string, key: Buffer): PayloadCodec {
  const encrypt = (payload: Payload): Payload => {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    const encrypted = [cipher.update(PayloadMessage.encode(payload).finish()), cipher.final(), cipher.getAuthTag()]
    const metadata = { encoding: Buffer.from('binary/encrypted'), 'encryption-key-id': Buffer.from(taskQueue) }
    return { metadata, data: Buffer.concat([nonce, ...encrypted]) }
  }
  const decrypt = (payload: Payload): Payload => {
    if (Buffer.from(payload.metadata?.encoding ?? []).toString() !== 'binary/encrypted') return payload
    const data = payload.data ?? new Uint8Array()
    const decipher = createDecipheriv('aes-256-gcm', key, data.subarray(0, 12), { authTagLength: 16 })
    decipher.setAuthTag(data.subarray(-16))
    return PayloadMessage.decode(Buffer.concat([decipher.update(data.subarray(12, -16)), decipher.final()]))
  }
  return {
    encode: async (payloads) => payloads.map(encrypt),
    decode: async (payloads) => payloads.map(decrypt),
  }
}
