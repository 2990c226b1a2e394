import type { ContentPart } from '../../../contract/messages.ts'

type ImagePart = Extract<ContentPart, { type: 'image' }>

const MAX_IMAGES = 10
/** Limit on a result's images together, as JSON: all of them are recorded, and sent with each later model call. */
const MAX_IMAGE_BYTES = 4 * 1024 * 1024

/** Keeps the images of a result that are within its limits. The others are replaced by one text part that says so. */
export function boundImages(images: ImagePart[]): ContentPart[] {
  const kept: ContentPart[] = []
  let bytes = 0
  for (const image of images) {
    if (kept.length === MAX_IMAGES) break
    const size = Buffer.byteLength(JSON.stringify(image))
    if (bytes + size > MAX_IMAGE_BYTES) continue
    bytes += size
    kept.push(image)
  }
  const leftOut = images.length - kept.length
  return leftOut === 0 ? kept : [...kept, { type: 'text', text: notice(leftOut) }]
}

const notice = (leftOut: number): string =>
  `[Left out: ${leftOut} ${leftOut === 1 ? 'image' : 'images'}. A result has at most ${MAX_IMAGES} images, of ${MAX_IMAGE_BYTES} bytes together.]`
