import { fetchSafely } from '../../lib/outgoing/fetch-safely.ts'
import type { GuardOptions } from '../../lib/outgoing/guard.ts'

const MiB = 1024 * 1024
/**
 * Maximum size of an image that a message names by address. IMAGE_MAX_BYTES does not change it: that is a quota for
 * stored images, while these bytes are only in memory, several images at once.
 */
const MAX_FETCHED_BYTES = 20 * MiB
const TIMEOUT_MS = 10_000
const MAX_DATA_URL_HEAD = 1000

/** Bytes of an image, or the reason for their absence: a sentence for the model. */
export type ImageBytes = { bytes: Buffer } | { problem: string }

export const isDataUrl = (url: string): boolean => /^data:/i.test(url)

/** Fetches the image at an http(s) address. Throws `OutgoingError`, or the signal's reason. */
export async function fetchImage(outgoing: GuardOptions, url: string, signal: AbortSignal): Promise<ImageBytes> {
  const { status, body, truncated } = await fetchSafely(outgoing, url, {
    headers: {
      accept: 'image/png, image/jpeg, image/gif, image/webp',
      'user-agent': 'agent-session-service (images)',
    },
    signal,
    maxBytes: MAX_FETCHED_BYTES,
    timeoutMs: TIMEOUT_MS,
  })
  if (status < 200 || status > 299) return { problem: `Its server answered ${status}.` }
  return truncated ? TOO_LARGE : toImage(body)
}

/** Reads the image in a data URL (RFC 2397). */
export function readDataUrl(url: string): ImageBytes {
  const comma = url.slice(0, MAX_DATA_URL_HEAD).indexOf(',')
  if (comma === -1 || !/;\s*base64\s*$/i.test(url.slice(0, comma))) return { problem: 'Its data is not base64.' }
  return toImage(Buffer.from(url.slice(comma + 1), 'base64'))
}

const TOO_LARGE = { problem: `It is larger than ${MAX_FETCHED_BYTES / MiB} MiB.` }

const toImage = (bytes: Buffer): ImageBytes => (bytes.length > MAX_FETCHED_BYTES ? TOO_LARGE : { bytes })
