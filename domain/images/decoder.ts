import pLimit from 'p-limit'
import sharp, { type Sharp } from 'sharp'
import { tooMany } from '../errors.ts'

/** Maximum number of pixels of an image, or of each frame of an animation. */
export const MAX_PIXELS = 50_000_000
const TIMEOUT_SECONDS = 10
/** Images decoded at once: the worst takes 430 MiB, because an interlaced PNG is decoded as a whole. */
const AT_ONCE = 1
const MAX_WAITING = 100
const BUSY_SECONDS = 10

// Decoded images are not kept, each is decoded by one thread of libuv's, and only by the decoders that are needed here.
sharp.cache(false)
sharp.concurrency(1)
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({
  operation: ['Png', 'Jpeg', 'Nsgif', 'Webp'].map((format) => `VipsForeignLoad${format}`),
})

const limit = pLimit(AT_ONCE)

/** Runs work that decodes an image once it is its turn. Throws `too_many` when too much is waiting. */
export function decoding<T>(work: () => Promise<T>): Promise<T> {
  if (limit.pendingCount >= MAX_WAITING) throw tooMany('Too many images are being uploaded; try again', BUSY_SECONDS)
  return limit(work)
}

/** Opens the image, or the first frame of an animation. Its decoding fails for damaged, larger and too costly ones. */
export const openImage = (bytes: Buffer): Sharp =>
  sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error', sequentialRead: true }).timeout({
    seconds: TIMEOUT_SECONDS,
  })

export type Size = { width: number; height: number }

/** Reads the size of an image as displayed, without decoding it. Rejects for anything that is no image. */
export async function readSize(bytes: Buffer): Promise<Size> {
  const { autoOrient } = await sharp(bytes, { limitInputPixels: false }).metadata()
  return autoOrient
}
