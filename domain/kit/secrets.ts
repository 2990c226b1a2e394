/**
 * Place of a stored secret: a table's row and column, such as `llm_providers/<organization>/<id>/api_key`. It is bound
 * to the ciphertext, which therefore cannot be read in another row.
 */
export type SecretPlace = string

/** Column of stored secrets. `keys` is its table's primary key, in the order of its places. */
export type EncryptedColumn = { table: string; keys: readonly string[]; column: string }

/** Returns the place of a row's secret. At most one of the keys may contain a slash, or places are ambiguous. */
export const placeOf = ({ table, column }: EncryptedColumn, keys: readonly string[]): SecretPlace =>
  [table, ...keys, column].join('/')

/** Shown instead of a stored secret. A client that sends it back keeps the stored one. */
export const MASK = '***'

/** Encryption of values that the service must read again: provider keys and users' secrets. */
export type Secrets = {
  /** Encrypts under the current key. The same text gives other bytes each time. */
  encrypt: (text: string, place: SecretPlace) => Uint8Array<ArrayBuffer>
  /** Throws `UnreadableSecret` when the key is unknown, the place is another one, or the bytes were changed. */
  decrypt: (bytes: Uint8Array, place: SecretPlace) => string
}

/**
 * Error of a stored secret that this process cannot read, through no fault of the caller. No process can read a damaged
 * one; for others another process may have the key.
 */
export class UnreadableSecret extends Error {
  override name = 'UnreadableSecret'
  readonly isDamaged: boolean

  constructor(message: string, { isDamaged }: { isDamaged: boolean }) {
    super(message)
    this.isDamaged = isDamaged
  }
}
