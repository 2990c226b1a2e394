import { type EncryptedColumn, placeOf, type Secrets, UnreadableSecret } from '../../domain/kit/secrets.ts'
import type { PrismaClient } from '../../prisma/generated/client.ts'
import { encryptedColumns, headerSql } from './encrypted-columns.ts'
import type { KeyRing } from './encryption-key.ts'
import { createSecrets, headerOf, keyIdOf } from './secrets.ts'

const BATCH = 100

/** Numbers of secrets. `changed` counts secrets that were overwritten or deleted before they could be re-encrypted. */
export type Reencrypted = {
  reencrypted: number
  current: number
  changed: number
  /** Sentences about secrets that cannot be read, by table and key id, with their number. */
  unreadable: Map<string, number>
}

/** Encrypts all stored secrets under the current key. May be stopped at any time, and repeated. */
export async function reencrypt(db: PrismaClient, ring: KeyRing, batch = BATCH): Promise<Reencrypted> {
  const secrets = createSecrets(ring)
  const result: Reencrypted = { reencrypted: 0, current: 0, changed: 0, unreadable: new Map() }
  for (const column of encryptedColumns) {
    for await (const { keys, isCurrent } of readPlaces(db, column, headerOf(ring.current), batch)) {
      if (isCurrent) result.current++
      else await move(db, secrets, column, keys, result)
    }
  }
  return result
}

type Stored = { keys: string[]; bytes: Uint8Array<ArrayBuffer> }
/** Row with a secret, which is read by itself: many together may be large. */
type Row = { keys: string[]; isCurrent: boolean }

/** Reads in the order of the primary key, so that each row is seen once even while others change. */
async function* readPlaces(
  db: PrismaClient,
  column: EncryptedColumn,
  currentHeader: Uint8Array<ArrayBuffer>,
  batch: number,
): AsyncGenerator<Row> {
  for (let after: string[] | undefined = []; after !== undefined; ) {
    const rows: Row[] = await db.$queryRawUnsafe(pageSql(column, after), currentHeader, batch, ...after)
    yield* rows
    after = rows.at(-1)?.keys
  }
}

function pageSql(encrypted: EncryptedColumn, after: string[]): string {
  const { table, column } = encrypted
  const columns = encrypted.keys.map((key) => `"${key}"`)
  const place = after.length === 0 ? '' : `AND (${columns}) > (${after.map((_, index) => `$${index + 3}`)})`
  return `SELECT ARRAY[${columns.map((key) => `${key}::text`)}] AS keys,
      ${headerSql(encrypted)} = $1 AS "isCurrent"
    FROM "${table}" WHERE "${column}" IS NOT NULL ${place} ORDER BY ${columns} LIMIT $2`
}

async function move(
  db: PrismaClient,
  secrets: Secrets,
  column: EncryptedColumn,
  keys: string[],
  result: Reencrypted,
): Promise<void> {
  const place = placeOf(column, keys)
  const stored = await read(db, column, keys)
  if (stored === undefined) {
    result.changed++
    return
  }
  try {
    const bytes = secrets.encrypt(secrets.decrypt(stored.bytes, place), place)
    const isReplaced = await replace(db, column, stored, bytes)
    result[isReplaced ? 'reencrypted' : 'changed']++
  } catch (error) {
    if (!(error instanceof UnreadableSecret)) throw error
    const sentence = `${column.table}, key ${keyIdOf(stored.bytes) ?? 'unknown'}: ${error.message}`
    result.unreadable.set(sentence, (result.unreadable.get(sentence) ?? 0) + 1)
  }
}

/** Reads a row's secret. Undefined when it is gone. */
async function read(db: PrismaClient, encrypted: EncryptedColumn, keys: string[]): Promise<Stored | undefined> {
  const { table, column } = encrypted
  const [row] = await db.$queryRawUnsafe<{ bytes: Stored['bytes'] }[]>(
    `SELECT "${column}" AS bytes FROM "${table}" WHERE "${column}" IS NOT NULL AND ${isRow(encrypted, 1)}`,
    ...keys,
  )
  return row && { keys, bytes: row.bytes }
}

/** SQL that selects a row by its keys, which are the parameters from the given number on. */
const isRow = ({ keys }: EncryptedColumn, first: number): string =>
  keys.map((key, index) => `"${key}" = $${index + first}`).join(' AND ')

/** Replaces the bytes that were read. Returns false when they are no longer there. */
async function replace(
  db: PrismaClient,
  encrypted: EncryptedColumn,
  stored: Stored,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const { table, column } = encrypted
  const sql = `UPDATE "${table}" SET "${column}" = $1 WHERE "${column}" = $2 AND ${isRow(encrypted, 3)}`
  return (await db.$executeRawUnsafe(sql, bytes, stored.bytes, ...stored.keys)) > 0
}
