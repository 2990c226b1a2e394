import type { Schedule } from '../../contract/schedules.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { type Counted, type PageStart, pages } from '../kit/lists.ts'
import { isFull, pageBySizeSql, type SizedRow } from '../kit/page-by-size.ts'
import type { Deps } from './deps.ts'
import { presentSchedules } from './read.ts'

type Filter = { enabled?: boolean | undefined; target_type?: string | undefined }
type Found = SizedRow & { id: string }

const SCHEDULES_AT_ONCE = 100

/** Lists the organization's schedules, newest first. */
export async function listSchedules(
  deps: Deps,
  actor: Actor,
  { limit, offset, ...filter }: Filter & { limit: number; offset: number },
): Promise<Counted<Schedule>> {
  const where = whereOf(actor, filter)
  const read = async (place: PageStart<Found>) => {
    const rows = await findPage(deps, actor, filter, place)
    return { rows, hasMore: isFull(rows) || rows.length === place.take }
  }
  const present = async (found: Found[]) => {
    const ids = found.map(({ id }) => id)
    const rows = await deps.db.schedule.findMany({ where: { ...where, id: { in: ids } }, orderBy: { id: 'desc' } })
    return presentSchedules(deps, rows)
  }
  return {
    pages: pages({ read, present, atOnce: SCHEDULES_AT_ONCE, offset, limit }),
    // The quota bounds it.
    total: await deps.db.schedule.count({ where }),
    ...{ offset, limit },
  }
}

const whereOf = ({ organizationId }: Actor, { enabled, target_type: targetType }: Filter) => ({
  organizationId,
  deletedAt: null,
  enabled,
  targetType,
})

function findPage(
  deps: Deps,
  { organizationId }: Actor,
  { enabled, target_type: targetType }: Filter,
  { after, skip, take }: PageStart<Found>,
): Promise<Found[]> {
  const order = Prisma.sql`id DESC`
  const schedules = Prisma.sql`
    SELECT * FROM schedules WHERE organization_id = ${organizationId}::uuid AND deleted_at IS NULL
      ${enabled === undefined ? Prisma.empty : Prisma.sql`AND enabled = ${enabled}`}
      ${targetType === undefined ? Prisma.empty : Prisma.sql`AND target_type = ${targetType}`}
      ${after === undefined ? Prisma.empty : Prisma.sql`AND id < ${after.id}::uuid`}
    ORDER BY ${order} LIMIT ${take} OFFSET ${skip}`
  const page = pageBySizeSql({
    found: schedules,
    order,
    columns: Prisma.sql`id`,
    sized: ['name', 'description', 'cron_expression', 'target_input', 'target_headers'],
  })
  return deps.db.$queryRaw`SELECT * FROM ${page} AS page ORDER BY id DESC`
}
