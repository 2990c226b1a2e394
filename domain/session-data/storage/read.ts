import { Prisma } from '../../../prisma/generated/client.ts'
import { conflict } from '../../kit/errors.ts'
import { toId } from '../../kit/ids.ts'
import { placeOf, UnreadableSecret } from '../../kit/secrets.ts'
import type { SessionScope } from '../../kit/session-scope.ts'
import type { Deps } from '../deps.ts'
import { requireStorable } from './change.ts'
import { SESSION_SECRETS } from './secret-column.ts'
import type { ListPart, StorageKind, StoredItem, ValuePart } from './session-storage.ts'

/** Reads some characters of a value. Undefined if it does not exist. Throws `invalid`. */
export async function readValue(
  deps: Deps,
  { organizationId, sessionId }: SessionScope,
  key: string,
  { offset, length }: { offset: number; length: number },
): Promise<ValuePart | undefined> {
  requireStorable('key', key)
  const [row] = await deps.db.$queryRaw<ValuePart[]>`
    SELECT substr(v.value, ${offset}::integer + 1, ${length}::integer) AS text,
      char_length(v.value) AS "totalCharacters", octet_length(v.value) AS "sizeBytes"
    FROM session_values v JOIN sessions s ON s.id = v.session_id
    WHERE v.session_id = ${sessionId}::uuid AND s.organization_id = ${organizationId}::uuid AND v.key = ${key}`
  return row
}

/**
 * Reads and decrypts a secret. Undefined if it does not exist. Throws `invalid`, and `conflict` if it cannot be
 * decrypted.
 */
export async function readSecret(
  deps: Deps,
  { organizationId, sessionId }: SessionScope,
  name: string,
): Promise<string | undefined> {
  requireStorable('name', name)
  const [row] = await deps.db.$queryRaw<{ value: Uint8Array }[]>`
    SELECT x.value FROM session_secrets x JOIN sessions s ON s.id = x.session_id
    WHERE x.session_id = ${sessionId}::uuid AND s.organization_id = ${organizationId}::uuid AND x.name = ${name}`
  if (row === undefined) return undefined
  try {
    return deps.secrets.decrypt(row.value, placeOf(SESSION_SECRETS, [sessionId, name]))
  } catch (error) {
    if (!(error instanceof UnreadableSecret)) throw error
    // Logs the id of the missing key for the operator, but not the secret's name, which the agent chose.
    deps.log.error({ session: toId('session', sessionId), err: error.message }, 'secret of a session not readable')
    throw conflict(error.isDamaged ? DAMAGED : WRONG_KEY)
  }
}

const WRONG_KEY =
  'The secret is stored, but this server does not have the key to read it; nothing is lost. Its operator has to give it ' +
  'that key, or set the secret again, which replaces it'
const DAMAGED =
  'The secret is stored, but damaged, so no key can read it. Other secrets are as they were. Set it again, which replaces it'

/** Lists values or secrets by name, without their contents. */
export async function listStored(
  deps: Deps,
  { organizationId, sessionId }: SessionScope,
  kind: StorageKind,
  { prefix, offset, limit }: ListPart,
): Promise<StoredItem[]> {
  requireStorable('prefix', prefix)
  const { columns, table } = LISTED[kind]
  const rows = await deps.db.$queryRaw<{ name: string; bytes?: number; updatedAt: Date }[]>`
    SELECT * FROM (
      SELECT ${columns}, x.updated_at AS "updatedAt" FROM ${table} x JOIN sessions s ON s.id = x.session_id
      WHERE x.session_id = ${sessionId}::uuid AND s.organization_id = ${organizationId}::uuid
    ) AS stored
    WHERE starts_with(name, ${prefix}) ORDER BY name LIMIT ${limit} OFFSET ${offset}`
  return rows.map(({ name, bytes, updatedAt }) => ({
    name,
    ...(bytes === undefined ? {} : { size_bytes: bytes }),
    updated_at: updatedAt.toISOString(),
  }))
}

const LISTED = {
  value: { columns: Prisma.sql`x.key AS name, octet_length(x.value) AS bytes`, table: Prisma.sql`session_values` },
  secret: { columns: Prisma.sql`x.name`, table: Prisma.sql`session_secrets` },
}
