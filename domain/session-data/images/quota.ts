import type { Prisma } from '../../../prisma/generated/client.ts'
import { quotaExceeded } from '../../kit/errors.ts'
import { lockOrganization } from '../../kit/lock-organization.ts'
import type { Deps } from '../deps.ts'

/** Runs the work in a transaction that excludes other counting and adding of the organization's images. */
export const withImagesLocked = <T>(
  deps: Deps,
  organizationId: string,
  work: (tx: Prisma.TransactionClient) => Promise<T>,
): Promise<T> =>
  deps.db.$transaction(async (tx) => {
    await lockOrganization(tx, organizationId)
    return work(tx)
  })

/** Throws `conflict` when the organization cannot have another image of that size. */
export async function checkQuota(
  { quotas: { images } }: Deps,
  tx: Prisma.TransactionClient,
  organizationId: string,
  sizeBytes: number,
): Promise<void> {
  const { _count: count, _sum: sum } = await tx.image.aggregate({
    where: { organizationId, completedAt: { not: null } },
    _count: true,
    _sum: { sizeBytes: true },
  })
  if (count >= images.maxCount) {
    throw quotaExceeded(`The organization has ${images.maxCount} images, which is the limit; delete one first`)
  }
  if ((sum.sizeBytes ?? 0) + sizeBytes > images.maxTotalBytes) {
    throw quotaExceeded(`The organization's images can take ${images.maxTotalBytes} bytes together; delete some first`)
  }
}
