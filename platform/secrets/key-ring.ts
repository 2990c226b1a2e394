import type { EncryptedColumn } from '../../domain/kit/secrets.ts'
import type { PrismaClient } from '../../prisma/generated/client.ts'
import { type Config, ConfigError } from '../config.ts'
import { sharedKey } from '../postgres/postgres.ts'
import { encryptedColumns, headerSql } from './encrypted-columns.ts'
import { type EncryptionKey, type KeyRing, keyFromBytes, keyFromText } from './encryption-key.ts'
import { keyIdOf } from './secrets.ts'

type Settings = Pick<Config, 'SECRETS_ENCRYPTION_KEY' | 'SECRETS_ENCRYPTION_KEY_PREVIOUS'>

/** Name of the installation's own key, which is made if SECRETS_ENCRYPTION_KEY is not set. */
const OWN_KEY = 'secrets'
/** Limit on the key ids read from a column. */
const MAX_KEY_IDS = 100

/**
 * Returns the keys of this process. Throws ConfigError, before anything is written, when the record has secrets under
 * a key that is not among them.
 */
export async function readKeyRing(settings: Settings, db: PrismaClient): Promise<KeyRing> {
  // Read before the own key, which another process may be about to create and use.
  const used = await listUsedKeys(db)
  const known = await findKeys(settings, db)
  await refuseUnknown(db, used, known)
  const current = known.current ?? keyFromBytes(await sharedKey(db, OWN_KEY))
  return { current, previous: known.previous }
}

/** `current` is undefined when none is given and none has been made. */
type FoundKeys = { current: EncryptionKey | undefined; previous: EncryptionKey[] }

/** Finds the keys of this process without creating one. */
export async function findKeys(settings: Settings, db: PrismaClient): Promise<FoundKeys> {
  const row = await db.serviceKey.findUnique({ where: { name: OWN_KEY } })
  const own = row === null ? [] : [keyFromBytes(row.value)]
  const given = [settings.SECRETS_ENCRYPTION_KEY ?? []].flat().map(keyFromText)
  const [current, ...others] = [...given, ...own]
  return { current, previous: [...others, ...settings.SECRETS_ENCRYPTION_KEY_PREVIOUS.map(keyFromText)] }
}

type UsedKey = { column: EncryptedColumn; header: Uint8Array<ArrayBuffer>; keyId: string }

async function listUsedKeys(db: PrismaClient): Promise<UsedKey[]> {
  const lists = await Promise.all(
    encryptedColumns.map(async (column) => {
      const rows = await db.$queryRawUnsafe<{ header: Uint8Array<ArrayBuffer> }[]>(usedHeadersSql(column))
      return rows.flatMap(({ header }) => {
        const keyId = keyIdOf(header)
        return keyId === undefined ? [] : [{ column, header, keyId }]
      })
    }),
  )
  return lists.flat()
}

/** Selects each header once, going from one to the next: with an index it reads one entry of each, not all rows. */
export function usedHeadersSql(column: EncryptedColumn): string {
  const header = headerSql(column)
  const first = (condition: string) =>
    `(SELECT ${header} FROM "${column.table}" WHERE ${header} ${condition} ORDER BY ${header} LIMIT 1)`
  return `WITH RECURSIVE headers (header) AS (
    ${first('IS NOT NULL')}
    UNION ALL
    SELECT ${first('> headers.header')} FROM headers WHERE headers.header IS NOT NULL
  ) SELECT header FROM headers WHERE header IS NOT NULL LIMIT ${MAX_KEY_IDS}`
}

async function refuseUnknown(db: PrismaClient, used: UsedKey[], { current, previous }: FoundKeys): Promise<void> {
  const own = [current ?? [], previous].flat().map(({ id }) => id)
  const counts = new Map<string, number>()
  for (const one of used.filter(({ keyId }) => !own.includes(keyId))) {
    counts.set(one.keyId, (counts.get(one.keyId) ?? 0) + (await countSecrets(db, one)))
  }
  if (counts.size === 0) return
  const missing = [...counts].map(([id, count]) => `${count} under the key ${id}`).join(', ')
  throw new ConfigError(
    `SECRETS_ENCRYPTION_KEY: does not fit this database, whose stored secrets (${missing}) need a key that is ` +
      `neither here nor in SECRETS_ENCRYPTION_KEY_PREVIOUS; this process has ${own.join(', ') || 'none'}`,
  )
}

async function countSecrets(db: PrismaClient, { column, header }: UsedKey): Promise<number> {
  const [row] = await db.$queryRawUnsafe<{ count: number }[]>(
    `SELECT count(*)::int AS count FROM "${column.table}" WHERE ${headerSql(column)} = $1`,
    header,
  )
  return row?.count ?? 0
}
