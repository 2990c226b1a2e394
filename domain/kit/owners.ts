import { createBoundedCache } from '../../lib/bounded-cache.ts'
import type { Prisma, PrismaClient } from '../../prisma/generated/client.ts'

/** Owners of organizations. Limits count by owner, across all organizations of the same owner. */
export type Owners = {
  /** Returns the id of the user who owns the organization first, or its own id if no user created it. */
  ownerOf(organizationId: string): Promise<string>
}

const CACHE_BYTES = 4 * 1024 * 1024
const ENTRY_BYTES = 256
/** An organization changes hands only when its owner leaves it. */
const TTL_MS = 60_000

export function createOwners(db: Pick<PrismaClient, 'organization'>): Owners {
  const known = createBoundedCache<string>(CACHE_BYTES)
  return {
    ownerOf: async (organizationId) => {
      const cached = known.get(organizationId)
      if (cached !== undefined) return cached
      const row = await db.organization.findUnique({ where: { id: organizationId }, select: { ownerId: true } })
      const owner = row?.ownerId ?? organizationId
      known.set(organizationId, owner, { sizeBytes: ENTRY_BYTES, ttlMs: TTL_MS })
      return owner
    },
  }
}

/** Passes an organization from its first owner to the next one. The caller holds the lock of its members. */
export async function passOn(tx: Prisma.TransactionClient, organizationId: string, userId: string): Promise<void> {
  const next = await tx.member.findFirst({
    where: { organizationId, role: 'owner', userId: { not: userId } },
    orderBy: [{ createdAt: 'asc' }, { userId: 'asc' }],
  })
  await tx.organization.updateMany({
    where: { id: organizationId, ownerId: userId },
    data: { ownerId: next?.userId ?? null },
  })
}
