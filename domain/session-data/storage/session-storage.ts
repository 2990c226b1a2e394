/** Value or secret in a list for a tool. Only a value has `size_bytes`. */
export type StoredItem = { name: string; size_bytes?: number; updated_at: string }

/** Part of a list of the items whose names begin with `prefix`, by name. */
export type ListPart = { prefix: string; offset: number; limit: number }

/** Characters of a value from `offset` on. `totalCharacters` and `sizeBytes` describe the whole value. */
export type ValuePart = { text: string; totalCharacters: number; sizeBytes: number }

export type StorageKind = 'value' | 'secret'

/** A session's values and secrets as a tool call reads and writes them. Names are 1 to 255 characters. */
export type SessionStorage = {
  /** Reads at most `length` characters of a value. Undefined if it does not exist. */
  readValue(key: string, part: { offset: number; length: number }): Promise<ValuePart | undefined>
  /** Reads a secret. Undefined if it does not exist. Throws `conflict` if it cannot be decrypted. */
  readSecret(name: string): Promise<string | undefined>
  list(kind: StorageKind, part: ListPart): Promise<StoredItem[]>
  /** Stores a value or secret. Returns whether it existed before. Throws `invalid` and `conflict`. */
  set(kind: StorageKind, name: string, value: string): Promise<{ existed: boolean }>
  /** Deletes a value or secret. Returns whether it existed. */
  delete(kind: StorageKind, name: string): Promise<{ existed: boolean }>
}
