import type { SessionId } from '../../../contract/kit/ids.ts'
import type { KeyValueInfo, SecretInfo } from '../../../contract/storage.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { type PageStart, type Pages, pages } from '../../kit/lists.ts'
import { isFull, pageBySizeSql, type SizedRow } from '../../kit/page-by-size.ts'
import { requireSession } from '../../kit/session-scope.ts'
import type { Deps } from '../deps.ts'
import { presentSecret, presentValue, type SecretRow, type ValueRow } from './present.ts'

/** Rows per page. A name has at most 1 KiB; a page of values is also limited by size. */
const ROWS_AT_ONCE = 200

/** Lists a session's values, by key. Throws `not_found`. */
export async function listValues(deps: Deps, actor: Actor, sessionId: SessionId): Promise<Pages<KeyValueInfo>> {
  await requireSession(deps, actor, sessionId)
  return pages({
    atOnce: ROWS_AT_ONCE,
    read: async ({ after, take }: PageStart<ValueRow & SizedRow>) => {
      const page = pageBySizeSql({
        found: Prisma.sql`
          SELECT v.* FROM session_values v JOIN sessions s ON s.id = v.session_id
          WHERE v.session_id = ${sessionId}::uuid AND s.organization_id = ${actor.organizationId}::uuid
            AND v.key > ${after?.key ?? ''}
          ORDER BY v.key LIMIT ${take}`,
        order: Prisma.sql`key`,
        columns: Prisma.sql`key, value, created_at AS "createdAt", updated_at AS "updatedAt"`,
        sized: ['value'],
      })
      const rows = await deps.db.$queryRaw<(ValueRow & SizedRow)[]>`SELECT * FROM ${page} AS page ORDER BY key`
      return { rows, hasMore: rows.length === take || isFull(rows) }
    },
    present: (rows) => rows.map(presentValue),
  })
}

/** Lists a session's secrets, by name, without reading their values. Throws `not_found`. */
export async function listSecrets(deps: Deps, actor: Actor, sessionId: SessionId): Promise<Pages<SecretInfo>> {
  await requireSession(deps, actor, sessionId)
  return pages({
    atOnce: ROWS_AT_ONCE,
    read: async ({ after, take }: PageStart<SecretRow>) => {
      const rows = await deps.db.$queryRaw<SecretRow[]>`
        SELECT x.name, x.created_at AS "createdAt", x.updated_at AS "updatedAt"
        FROM session_secrets x JOIN sessions s ON s.id = x.session_id
        WHERE x.session_id = ${sessionId}::uuid AND s.organization_id = ${actor.organizationId}::uuid
          AND x.name > ${after?.name ?? ''}
        ORDER BY x.name LIMIT ${take}`
      return { rows, hasMore: rows.length === take }
    },
    present: (rows) => rows.map(presentSecret),
  })
}
