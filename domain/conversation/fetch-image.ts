import { type ImageType, imageTypeOf } from '../../lib/image-type.ts'
import { fetchSafely } from '../../lib/outgoing/fetch-safely.ts'
import type { GuardOptions } from '../../lib/outgoing/guarded-agent.ts'

const MiB = 1024 * 1024
const IMAGE_MAX_BYTES = 20 * MiB
const TIMEOUT_MS = 10_000
const MAX_DATA_URL_HEAD = 1000

/** An image as data. `sizeBytes` is that of the image, not of its base64. */
export type LoadedImage = { base64: string; mediaType: ImageType; sizeBytes: number }

/** An image, or the reason why there is none: a sentence for the model. */
export type ImageResult = LoadedImage | { problem: string }

export const isDataUrl = (url: string): boolean => /^data:/i.test(url)

/** Fetches the image at an http(s) address. Throws `OutgoingError`, or the signal's reason. */
export async function fetchImage(outgoing: GuardOptions, url: string, signal: AbortSignal): Promise<ImageResult> {
  const { status, body, truncated } = await fetchSafely(outgoing, url, {
    headers: {
      accept: 'image/png, image/jpeg, image/gif, image/webp',
      'user-agent': 'agent-session-service (images)',
    },
    signal,
    maxBytes: IMAGE_MAX_BYTES,
    timeoutMs: TIMEOUT_MS,
  })
  if (status < 200 || status > 299) return { problem: `Its server answered ${status}.` }
  return truncated ? TOO_LARGE : toImage(body)
}

/** Reads the image in a data URL (RFC 2397). */
export function readDataUrl(url: string): ImageResult {
  const comma = url.slice(0, MAX_DATA_URL_HEAD).indexOf(',')
  if (comma === -1 || !/;\s*base64\s*$/i.test(url.slice(0, comma))) return { problem: 'Its data is not base64.' }
  return toImage(Buffer.from(url.slice(comma + 1), 'base64'))
}

const TOO_LARGE = { problem: `It is larger than ${IMAGE_MAX_BYTES / MiB} MiB.` }

function toImage(bytes: Buffer): ImageResult {
  if (bytes.length > IMAGE_MAX_BYTES) return TOO_LARGE
  const mediaType = imageTypeOf(bytes)
  if (mediaType === undefined) return { problem: 'It is no PNG, JPEG, GIF or WebP image.' }
  return { base64: bytes.toString('base64'), mediaType, sizeBytes: bytes.length }
}
