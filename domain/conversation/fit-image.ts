import type { Sharp } from 'sharp'
import { imageSizeOf } from '../../lib/image-size.ts'
import { type ImageType, imageTypeOf } from '../../lib/image-type.ts'
import { DomainError } from '../kit/errors.ts'
import { MAX_IMAGE_BASE64 } from '../models/llm/image-limits.ts'
import { ModelError } from '../models/llm/model.ts'
import { decoding, exceededLimit, MAX_PIXELS, openImage } from '../session-data/images/decoder.ts'

/** An image as a model is given it. `sizeBytes` is the size of the image, not of its base64. */
export type FittedImage = { base64: string; mediaType: ImageType; sizeBytes: number }

/** An image, or the reason for its absence: a sentence for the model. */
export type ImageResult = FittedImage | { problem: string }

/** Maximum number of bytes of MAX_IMAGE_BASE64 characters. */
const MAX_BYTES = (MAX_IMAGE_BASE64 / 4) * 3

/**
 * Scales an image down to a model's limits, upright, in a type that every provider takes. An image that fits already
 * keeps its bytes. An animation becomes its first frame. Throws a retryable `ModelError` when too much is being
 * decoded, and the signal's reason.
 */
export async function fitImage(
  owner: string,
  bytes: Buffer,
  maxEdge: number,
  signal: AbortSignal,
): Promise<ImageResult> {
  const type = imageTypeOf(bytes)
  if (type === undefined) return { problem: 'It is not a PNG, JPEG, GIF or WebP image.' }
  const problem = findProblem(bytes, type)
  if (problem !== undefined) return { problem }
  try {
    const { data, mediaType } = await decoding(owner, signal, () => scale(bytes, type, maxEdge))
    return { base64: data.toString('base64'), mediaType, sizeBytes: data.length }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof DomainError) throw busy()
    return { problem: 'It could not be decoded.' }
  }
}

/** Error of a call that would lack existing images. */
export const busy = () => new ModelError('The service is loading too many images at the moment.', { retryable: true })

/** Finds the reason that would make decoding too costly. */
function findProblem(bytes: Buffer, type: ImageType): string | undefined {
  const { width, height } = imageSizeOf(bytes) ?? { width: 0, height: 0 }
  if (width * height > MAX_PIXELS) return `It has more than ${MAX_PIXELS / 1e6} megapixels.`
  const limit = exceededLimit(bytes, type)
  return limit && `It has more than ${limit}.`
}

/** Number of base64 characters that are searched for the image's size. */
const HEAD = 256 * 1024

/** Whether an image in base64 is given to the model as it is. The provider judges an image of unknown size. */
export function fitsAsItIs(base64: string, maxEdge: number, declaredType?: string | null): boolean {
  if (base64.length > MAX_IMAGE_BASE64) return false
  const bytes = Buffer.from(base64.slice(0, HEAD), 'base64')
  const size = imageSizeOf(bytes)
  if (size === undefined) return true
  const type = imageTypeOf(bytes)
  // A provider refuses an image with a wrong type.
  const isTrue = !declaredType || declaredType === type
  return isTrue && type !== 'image/gif' && Math.max(size.width, size.height) <= maxEdge
}

type Encoded = { data: Buffer; mediaType: ImageType }

async function scale(bytes: Buffer, mediaType: ImageType, maxEdge: number): Promise<Encoded> {
  const { width, height, pages = 1, orientation = 1 } = await openImage(bytes).metadata()
  const isSmall = Math.max(width, height) <= maxEdge && bytes.length <= MAX_BYTES
  if (isSmall && pages === 1 && orientation === 1 && mediaType !== 'image/gif') {
    await decode(bytes)
    return { data: bytes, mediaType }
  }
  const scaled = openImage(bytes)
    .autoOrient()
    .resize({ width: maxEdge, height: maxEdge, fit: 'inside', withoutEnlargement: true })
  const encoded = await encode(scaled, mediaType)
  if (encoded.data.length <= MAX_BYTES) return encoded
  return {
    data: await scaled.clone().flatten({ background: '#fff' }).jpeg({ quality: 70 }).toBuffer(),
    mediaType: 'image/jpeg',
  }
}

/** Decodes the whole image, so that broken data is found here and not by the provider. */
const decode = (bytes: Buffer): Promise<Buffer> => openImage(bytes).resize(16, 16, { fit: 'inside' }).raw().toBuffer()

async function encode(image: Sharp, mediaType: ImageType): Promise<Encoded> {
  const copy = image.clone()
  if (mediaType === 'image/jpeg') return { data: await copy.jpeg({ quality: 85 }).toBuffer(), mediaType }
  if (mediaType === 'image/webp') return { data: await copy.webp({ quality: 85 }).toBuffer(), mediaType }
  return { data: await copy.png().toBuffer(), mediaType: 'image/png' }
}
