import { type AuditEntry, type AuditQuery, actionsOn, TARGET_PREFIXES } from '../../../contract/audit.ts'
import { type AuditEntry as EntryRow, Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { allOf } from '../filters.ts'
import { toId } from '../ids.ts'
import { type PageStart, type Pages, pages } from '../lists.ts'

/** Entries that are read at once, of less than 1 KiB each. */
const ENTRIES_AT_ONCE = 200

type Filter = Omit<AuditQuery, 'limit'> & { limit?: number | undefined }

/** Lists the entries of the organization's audit log that match, newest first; all of them without a limit. */
export const listAuditEntries = (deps: Deps, actor: Actor, filter: Filter): Pages<AuditEntry> =>
  pages({
    atOnce: ENTRIES_AT_ONCE,
    limit: filter.limit,
    read: async (place: PageStart<EntryRow>) => {
      const rows = await readEntries(deps, actor, filter, place)
      return { rows, hasMore: rows.length === place.take }
    },
    present: (rows) => rows.map(presentEntry),
  })

const readEntries = (deps: Deps, { organizationId }: Actor, filter: Filter, { after, take }: PageStart<EntryRow>) =>
  deps.db.$queryRaw<EntryRow[]>`
    SELECT id, organization_id AS "organizationId", created_at AS "createdAt", action, user_id AS "userId",
      api_key_id AS "apiKeyId", address, request_id AS "requestId", target_id AS "targetId", details
    FROM audit_entries
    WHERE ${conditionsOf(organizationId, filter, after)}
    ORDER BY created_at DESC, id DESC LIMIT ${take}`

function conditionsOf(organizationId: string, filter: Filter, after: EntryRow | undefined): Prisma.Sql {
  const { action, target_type, user_id, api_key_id, target_id, from, to, before } = filter
  // Of the organization, so that another's id says nothing.
  const place = Prisma.sql`SELECT created_at, id FROM audit_entries
    WHERE organization_id = ${organizationId}::uuid AND id = ${before ?? null}::uuid`
  return allOf([
    Prisma.sql`organization_id = ${organizationId}::uuid`,
    action && Prisma.sql`action = ANY (${action}::text[])`,
    target_type && Prisma.sql`action = ANY (${actionsOn(target_type)}::text[])`,
    user_id && Prisma.sql`user_id = ${user_id}::uuid`,
    api_key_id && Prisma.sql`api_key_id = ${api_key_id}::uuid`,
    target_id && Prisma.sql`target_id = ${target_id}::uuid`,
    from && Prisma.sql`created_at >= ${from}::timestamptz`,
    to && Prisma.sql`created_at < ${to}::timestamptz`,
    before && Prisma.sql`(created_at, id) < (${place})`,
    after && Prisma.sql`(created_at, id) < (${after.createdAt}::timestamptz, ${after.id}::uuid)`,
  ])
}

function presentEntry({ action, details, ...row }: EntryRow): AuditEntry {
  const type = action.slice(0, action.indexOf('.'))
  // An entry of a later release may have another kind.
  const prefix = (TARGET_PREFIXES as Record<string, (typeof TARGET_PREFIXES)['agent']>)[type]
  return {
    id: row.id,
    created_at: row.createdAt.toISOString(),
    action,
    user_id: row.userId,
    api_key_id: row.apiKeyId,
    address: row.address,
    request_id: row.requestId,
    target_type: type,
    target_id: prefix === undefined ? row.targetId : toId(prefix, row.targetId),
    // Written by `audit`.
    details: details as AuditEntry['details'],
  }
}
