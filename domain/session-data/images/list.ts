import type { ImageInfo } from '../../../contract/images.ts'
import type { Actor } from '../../kit/actor.ts'
import { type PageStart, type Pages, pages } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import { type ImageRow, INFO, presentImage } from './present.ts'

const IMAGES_AT_ONCE = 100

/** Lists the organization's images, newest first. */
export const listImages = (
  deps: Deps,
  { organizationId }: Actor,
  part: { limit: number; offset: number },
): Pages<ImageInfo> =>
  pages({
    ...part,
    atOnce: IMAGES_AT_ONCE,
    read: async ({ after, skip, take }: PageStart<ImageRow>) => {
      const rows = await deps.db.image.findMany({
        where: { organizationId, completedAt: { not: null }, id: { lt: after?.id } },
        select: INFO,
        orderBy: { id: 'desc' },
        skip,
        take,
      })
      return { rows, hasMore: rows.length === take }
    },
    present: (rows) => rows.map(presentImage),
  })
