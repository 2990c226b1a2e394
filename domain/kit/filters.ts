import { Prisma } from '../../prisma/generated/client.ts'
import { invalid } from './errors.ts'

/** Throws `invalid` for times in the wrong order. */
export function checkTimes({ from, to }: { from?: Date | undefined; to?: Date | undefined }): void {
  if (from && to && from >= to) throw invalid('from: must be before to')
}

/** Joins the conditions of a filter; absent ones are left out. */
export const allOf = (conditions: (Prisma.Sql | '' | false | undefined)[]): Prisma.Sql =>
  Prisma.join(
    conditions.filter((one) => one instanceof Prisma.Sql),
    ' AND ',
  )
