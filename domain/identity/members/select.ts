import type { Member, Prisma } from '../../../prisma/generated/client.ts'
import { ANONYMOUS_USER_UUID } from '../../kit/ids.ts'
import type { PageStart } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import type { MemberRow } from './present.ts'

/** Selects the visible members: with sign-in, all but the anonymous one. */
export const visibleMembers = ({ auth }: Deps): Prisma.MemberWhereInput =>
  auth.mode === 'none' ? {} : { userId: { not: ANONYMOUS_USER_UUID } }

/** Reads a page of an organization's visible members that match, newest first. */
export async function readMembers(
  deps: Deps,
  organizationId: string,
  { after, skip, take }: PageStart<MemberRow>,
  found: Prisma.MemberWhereInput = {},
): Promise<{ rows: MemberRow[]; hasMore: boolean }> {
  const older = after === undefined ? {} : joinedBefore(after)
  const rows = await deps.db.member.findMany({
    where: { organizationId, AND: [found, older, visibleMembers(deps)] },
    include: { user: true },
    orderBy: [{ createdAt: 'desc' }, { userId: 'desc' }],
    skip,
    take,
  })
  return { rows, hasMore: rows.length === take }
}

/** Selects the members after this one, newest first. */
const joinedBefore = ({ createdAt, userId }: Member): Prisma.MemberWhereInput => ({
  // This bound alone lets the query start in the index.
  createdAt: { lte: createdAt },
  OR: [{ createdAt: { lt: createdAt } }, { userId: { lt: userId } }],
})
