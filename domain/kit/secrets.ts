/**
 * Place of a stored secret: a table's row and column, such as `llm_providers/<organization>/<id>/api_key`. It is bound
 * to the ciphertext, so that one moved to another row cannot be read.
 */
export type SecretPlace = string

/** Column of stored secrets. `keys` is its table's primary key, in the order in which places name it. */
export type EncryptedColumn = { table: string; keys: readonly string[]; column: string }

/** Returns the place of a row's secret. At most one of the keys may contain a slash, or places are ambiguous. */
export const placeOf = ({ table, column }: EncryptedColumn, keys: readonly string[]): SecretPlace =>
  [table, ...keys, column].join('/')

/** What is shown instead of a stored secret. Sent back, it stands for the one that is kept. */
export const MASK = '***'

/** Encryption of what is stored and must be given back: provider keys and users' secrets. */
export type Secrets = {
  /** Encrypts under the current key. The same text gives other bytes each time. */
  encrypt: (text: string, place: SecretPlace) => Uint8Array<ArrayBuffer>
  /** Throws `UnreadableSecret` when the key is unknown, the place is another one, or the bytes were changed. */
  decrypt: (bytes: Uint8Array, place: SecretPlace) => string
}

/**
 * Error of a stored secret that this process cannot read, which no caller has caused. A damaged one cannot be read by
 * any process; others are worth another attempt elsewhere.
 */
export class UnreadableSecret extends Error {
  override name = 'UnreadableSecret'
  readonly isDamaged: boolean

  constructor(message: string, { isDamaged }: { isDamaged: boolean }) {
    super(message)
    this.isDamaged = isDamaged
  }
}
