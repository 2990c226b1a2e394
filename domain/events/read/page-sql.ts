import { Prisma } from '../../../prisma/generated/client.ts'
import { pageBySizeSql } from '../../kit/page-by-size.ts'

export const EVENT_COLUMNS = Prisma.sql`sequence, type, ts, turn_id, step, exec_id, data`

/** Selects the first of the found events, up to the size of a page. `found` selects EVENT_COLUMNS. */
export const sizedEventsSql = (found: Prisma.Sql, direction = Prisma.sql`ASC`): Prisma.Sql =>
  pageBySizeSql({
    found,
    order: Prisma.sql`sequence ${direction}`,
    columns: Prisma.sql`sequence, type, ts, turn_id AS "turnId", step, exec_id AS "execId", data`,
    sized: ['data'],
  })
