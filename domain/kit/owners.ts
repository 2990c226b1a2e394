import { createBoundedCache } from '../../lib/bounded-cache.ts'
import type { Prisma, PrismaClient } from '../../prisma/generated/client.ts'

/** Says who shares what an organization takes: limits count by owner, however many organizations that one has. */
export type Owners = {
  /** Returns the user who owns the organization first, or the organization's own id where no user made it. */
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

/** Gives an organization that a user owned first to its next owner. The caller holds the lock of its members. */
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
