import type { Member, Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { ANONYMOUS_USER_UUID } from '../ids.ts'

/** Selects the members that are shown: where users have to sign in, all but the anonymous one. */
export const visibleMembers = ({ auth }: Deps): Prisma.MemberWhereInput =>
  auth.mode === 'none' ? {} : { userId: { not: ANONYMOUS_USER_UUID } }

/** Selects the members that follow one in a list, newest first. */
export const joinedBefore = ({ createdAt, userId }: Member): Prisma.MemberWhereInput => ({
  // This bound alone lets the query start in the index.
  createdAt: { lte: createdAt },
  OR: [{ createdAt: { lt: createdAt } }, { userId: { lt: userId } }],
})
