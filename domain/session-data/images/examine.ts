import type { ImageType } from '../../../lib/image-type.ts'
import { invalid } from '../../kit/errors.ts'
import { exceededLimit, MAX_PIXELS, openImage, readSize, type Size } from './decoder.ts'

const THUMBNAIL_PIXELS = 200
const WHITE = '#fff'

export type Examined = Size & { thumbnail: Buffer }

/** Decodes an image and makes its thumbnail. Throws `invalid` for a damaged or too costly image. */
export async function examineImage(bytes: Buffer, type: ImageType): Promise<Examined> {
  const limit = exceededLimit(bytes, type)
  if (limit !== undefined) throw invalid(`file: must have at most ${limit}`)
  const { width, height } = await readSize(bytes).catch(throwUnreadable)
  if (width * height > MAX_PIXELS) {
    throw invalid(`file: must have at most ${MAX_PIXELS / 1e6} megapixels, but has ${width} × ${height} pixels`)
  }
  return { width, height, thumbnail: await makeThumbnail(bytes).catch(throwUnreadable) }
}

const makeThumbnail = (bytes: Buffer): Promise<Buffer> =>
  openImage(bytes)
    .autoOrient()
    .resize(THUMBNAIL_PIXELS, THUMBNAIL_PIXELS, { fit: 'inside', withoutEnlargement: true })
    .flatten({ background: WHITE })
    .jpeg()
    .toBuffer()

/** The decoder reports all errors alike, so its message is not passed on. */
function throwUnreadable(): never {
  throw invalid('file: is damaged or incomplete; no image can be read from it')
}
