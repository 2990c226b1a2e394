import type { ImageId } from '../../../contract/kit/ids.ts'
import type { Actor } from '../../kit/actor.ts'
import { notFound } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'

/** Deletes an image with its bytes. Throws `not_found`. */
export async function deleteImage(deps: Deps, { organizationId }: Actor, id: ImageId): Promise<void> {
  const { count } = await deps.db.image.deleteMany({ where: { id, organizationId, completedAt: { not: null } } })
  if (count === 0) throw notFound('Image')
}
