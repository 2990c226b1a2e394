/** Name and key of a task queue, as payloads need them. */
export type QueueKey = { name: string; key: Uint8Array }

/** Payload as Temporal has it. */
export type Payload = {
  metadata?: Record<string, Uint8Array> | null | undefined
  data?: Uint8Array | null | undefined
}

/** Encryption of the payloads between the service and the workers of an organization. */
export type Sealing = {
  /** Encrypts a JSON value. */
  seal(value: unknown, key: QueueKey): Payload
  /**
   * Decrypts a JSON value; undefined stands for a worker's absent one. Throws `UnreadablePayload`.
   */
  open(payload: Payload, key: QueueKey): unknown
}

/** Error of a payload that is not the worker's JSON, encrypted with the key. The message is for the model. */
export class UnreadablePayload extends Error {
  override name = 'UnreadablePayload'
}
