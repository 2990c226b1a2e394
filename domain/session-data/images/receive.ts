import { cleanFileName } from '../../../lib/file-name.ts'
import { type ImageType, imageTypeOf } from '../../../lib/image-type.ts'
import { inChunks } from '../../../lib/in-chunks.ts'
import type { Actor } from '../../kit/actor.ts'
import { invalid, tooMany } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'
import { CHUNK_BYTES, insertChunk } from './chunks.ts'
import { checkQuota, withImagesLocked } from './quota.ts'

/** File as it arrives, with the name and type that the client claims. */
export type ArrivingFile = { name: string | undefined; contentType: string; chunks: AsyncIterable<Uint8Array> }

export type Received = { contentType: ImageType; sizeBytes: number }

/** Maximum number of an organization's concurrent uploads. Uploads of a killed process also count, for `COUNTED_MS`. */
const UPLOADS_AT_ONCE = 100
const COUNTED_MS = 15 * 60_000
const BUSY_SECONDS = 10

/**
 * Stores a file while it arrives, as the bytes of an image that is not visible yet. Throws `invalid` for anything but an
 * image, and `conflict` at the quota.
 */
export async function receiveImage(
  deps: Deps,
  { organizationId }: Actor,
  { isKeyed, ...image }: { id: string; notedSessionId: string | null; isKeyed: boolean },
  file: ArrivingFile,
): Promise<Received> {
  let contentType: ImageType | undefined
  let sizeBytes = 0
  for await (const chunk of inChunks(file.chunks, CHUNK_BYTES)) {
    if (contentType === undefined) {
      contentType = checkType(chunk, file.contentType)
      const filename = cleanFileName(file.name ?? '') ?? `image.${extensionOf(contentType)}`
      const data = { ...image, organizationId, filename, contentType }
      await insertUnfinished(deps, data, isKeyed ? 'later' : 'now')
    }
    await insertChunk(deps, image.id, sizeBytes, chunk)
    sizeBytes += chunk.length
  }
  if (contentType === undefined) throw invalid('file: must not be empty')
  return { contentType, sizeBytes }
}

/** Types that declare nothing about a file. The second is the default of a part (RFC 7578). */
const UNDECLARED = ['application/octet-stream', 'text/plain']

/** Detects the type from the content. Throws `invalid` if the client claims another type. */
function checkType(start: Buffer, claimed: string): ImageType {
  const type = imageTypeOf(start)
  if (type === undefined) throw invalid('file: must be a PNG, JPEG, GIF or WebP image')
  const claimedType = claimed.toLowerCase().replace('image/jpg', 'image/jpeg')
  if (claimedType !== type && !UNDECLARED.includes(claimedType)) {
    throw invalid(`file: must be of the declared type ${claimed}, but is ${type}`)
  }
  return type
}

const extensionOf = (type: ImageType): string => (type === 'image/jpeg' ? 'jpg' : type.slice('image/'.length))

type Unfinished = {
  id: string
  organizationId: string
  notedSessionId: string | null
  filename: string
  contentType: string
}

/** With a key, the quota is checked later, when it is known whether the request already has its image. */
const insertUnfinished = (deps: Deps, data: Unfinished, quota: 'now' | 'later'): Promise<void> =>
  withImagesLocked(deps, data.organizationId, async (tx) => {
    const { organizationId } = data
    if (quota === 'now') await checkQuota(deps, tx, organizationId, 0)
    const since = new Date(Date.now() - COUNTED_MS)
    const others = await tx.image.count({ where: { organizationId, completedAt: null, createdAt: { gt: since } } })
    if (others >= UPLOADS_AT_ONCE) {
      throw tooMany(`The organization uploads ${others} images already, which is the limit; try again`, BUSY_SECONDS)
    }
    await tx.image.create({ data, select: { id: true } })
  })
