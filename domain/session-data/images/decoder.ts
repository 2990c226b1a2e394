import sharp, { type Sharp } from 'sharp'
import { createFairQueue } from '../../../lib/fair-queue.ts'
import { hasMoreFramesThan, hasMoreScansThan } from '../../../lib/image-frames.ts'
import type { ImageType } from '../../../lib/image-type.ts'
import { tooMany } from '../../kit/errors.ts'

/** Maximum number of pixels of an image, or of each frame of an animation. */
export const MAX_PIXELS = 50_000_000
const MAX_FRAMES = 1000
/**
 * Maximum scans of a progressive JPEG. Typical ones have about ten. Each scan of 50 megapixels takes 11 ms, which no
 * time limit interrupts.
 */
const MAX_SCANS = 100
const TIMEOUT_SECONDS = 10
/** Number of images decoded at once. The worst takes 430 MiB, because an interlaced PNG is decoded as a whole. */
const AT_ONCE = 1
const MAX_WAITING = 200
const WAIT_MS = 60_000
const BUSY_SECONDS = 10

// Decoded images are not cached, each is decoded by one thread of libuv, and only the needed decoders are enabled.
sharp.cache(false)
sharp.concurrency(1)
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({
  operation: ['Png', 'Jpeg', 'Nsgif', 'Webp'].map((format) => `VipsForeignLoad${format}`),
})

const slots = createFairQueue(AT_ONCE, WAIT_MS, { maxWaiting: MAX_WAITING, maxWaitingOfOwner: MAX_WAITING / 2 })

/**
 * Runs work that decodes an image when its turn comes, fairly among owners. Throws `too_many` when too much is waiting,
 * and the signal's reason if it aborts before.
 */
export const decoding = <T>(owner: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> =>
  slots.run({ owner }, work, refuse, signal)

const refuse = (): never => {
  throw tooMany('Too many images are being decoded; try again', BUSY_SECONDS)
}

/** Returns the exceeded limit of an image whose decoding would take too long at any size. */
export function exceededLimit(bytes: Buffer, type: ImageType): string | undefined {
  if (hasMoreFramesThan(MAX_FRAMES, bytes, type)) return `${MAX_FRAMES} frames`
  return type === 'image/jpeg' && hasMoreScansThan(MAX_SCANS, bytes) ? `${MAX_SCANS} scans` : undefined
}

/** Opens the image, or the first frame of an animation. Its decoding fails for damaged, larger and too costly ones. */
export const openImage = (bytes: Buffer): Sharp =>
  sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error', sequentialRead: true }).timeout({
    seconds: TIMEOUT_SECONDS,
  })

export type Size = { width: number; height: number }

/** Reads the size of an image as displayed, without decoding it. Rejects for anything but an image. */
export async function readSize(bytes: Buffer): Promise<Size> {
  const { autoOrient } = await sharp(bytes, { limitInputPixels: false }).metadata()
  return autoOrient
}
