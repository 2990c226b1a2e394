import type { ImageId } from '../../../contract/kit/ids.ts'
import type { ImageType } from '../../../lib/image-type.ts'
import type { Actor } from '../../kit/actor.ts'
import { notFound } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'
import { readChunks, readWhole } from './chunks.ts'
import { typeOf } from './present.ts'

/** Image with a way to read its bytes from one place up to another. */
export type OpenedImage = {
  contentType: ImageType
  filename: string
  sizeBytes: number
  read: (start: number, end: number) => AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

const ofOrganization = (organizationId: string, id: string) => ({ id, organizationId, completedAt: { not: null } })

/** Finds an image. Its bytes are read on demand. Throws `not_found`. */
export async function openImageFile(deps: Deps, { organizationId }: Actor, id: ImageId): Promise<OpenedImage> {
  const row = await deps.db.image.findFirst({
    where: ofOrganization(organizationId, id),
    select: { contentType: true, filename: true, sizeBytes: true },
  })
  if (row === null) throw notFound('Image')
  const { filename, sizeBytes } = row
  return {
    ...{ filename, sizeBytes, contentType: typeOf(row) },
    read: (start, end) => orNotFound(readChunks(deps, id, start, end)),
  }
}

/** Throws `not_found` if the image was deleted before its first chunk was read. */
async function* orNotFound(chunks: AsyncGenerator<Uint8Array, undefined>): AsyncGenerator<Uint8Array> {
  const first = await chunks.next()
  if (first.done) throw notFound('Image')
  yield first.value
  yield* chunks
}

/** Reads an image's thumbnail. Throws `not_found`. */
export async function readThumbnail(deps: Deps, { organizationId }: Actor, id: ImageId): Promise<OpenedImage> {
  const row = await deps.db.image.findFirst({
    where: ofOrganization(organizationId, id),
    select: { filename: true, thumbnail: true },
  })
  if (!row?.thumbnail) throw notFound('Image')
  const { thumbnail } = row
  return {
    contentType: 'image/jpeg',
    filename: `thumbnail of ${row.filename.replace(/\.\w{1,10}$/, '')}.jpg`,
    sizeBytes: thumbnail.length,
    read: (start, end) => [thumbnail.subarray(start, end)],
  }
}

export type ReadImage = { contentType: ImageType; sizeBytes: number; bytes: Buffer }

/** Reads an image into memory. Undefined if the organization has no image with this id. */
export async function readImage(deps: Deps, organizationId: string, id: string): Promise<ReadImage | undefined> {
  const row = await deps.db.image.findFirst({
    where: ofOrganization(organizationId, id),
    select: { contentType: true, sizeBytes: true },
  })
  const bytes = row && (await readWhole(deps, id, row.sizeBytes))
  return bytes ? { contentType: typeOf(row), sizeBytes: row.sizeBytes, bytes } : undefined
}
