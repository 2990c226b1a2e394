import type { ImageType } from '../../lib/image-type.ts'
import type { Deps } from '../deps.ts'
import { readWhole } from './chunks.ts'

export type ReadImage = { contentType: ImageType; sizeBytes: number; bytes: Buffer }

/** Reads an image into memory. Undefined when the organization has none with this id. */
export async function readImage(deps: Deps, organizationId: string, id: string): Promise<ReadImage | undefined> {
  const row = await deps.db.image.findFirst({
    where: { id, organizationId, completedAt: { not: null } },
    select: { contentType: true, sizeBytes: true },
  })
  if (row === null) return undefined
  const bytes = await readWhole(deps, id, row.sizeBytes)
  // Uploads store no other types.
  return bytes && { contentType: row.contentType as ImageType, sizeBytes: row.sizeBytes, bytes }
}
