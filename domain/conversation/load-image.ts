import { createFairQueue, type FairQueue } from '../../lib/fair-queue.ts'
import { OutgoingError } from '../../lib/outgoing/outgoing-error.ts'
import { warnRarely } from '../../lib/warn-rarely.ts'
import type { Deps } from './deps.ts'
import { fetchImage, type ImageBytes, isDataUrl, readDataUrl } from './fetch-image.ts'
import { busy, fitImage, type ImageResult } from './fit-image.ts'
import type { ImageSource } from './image-sources.ts'

export type ImageDeps = Pick<Deps, 'outgoing' | 'log' | 'owners' | 'images' | 'imageLoads'>

/** The caller of a model: the organization whose images may be read, and the model's limits. */
export type ImageReader = {
  organizationId: string
  /** Longest edge in pixels. */
  maxEdge: number
  /** Returns the ids whose images belong to the organization. */
  existing(ids: string[]): Promise<Set<string>>
  /** Returns an uploaded image's bytes; undefined if the organization has no image with this id. */
  read(id: string): Promise<Buffer | undefined>
}

/** An image's data, or the reason for its absence. */
export type Loaded = ImageResult | 'not_found'

/** Maximum number of images loaded and scaled at once in a process. Each is wholly in memory meanwhile. */
const LOADS_AT_ONCE = 8
const WAIT_MS = 30_000
/** More than the concurrent model calls of a worker can have waiting. */
const MAX_WAITING = 1000

export const createImageLoads = (): FairQueue =>
  createFairQueue(LOADS_AT_ONCE, WAIT_MS, { maxWaiting: MAX_WAITING, maxWaitingOfOwner: MAX_WAITING })

/**
 * Loads an image within the model's limits. Throws errors of the record, a retryable `ModelError` when too many images
 * are being loaded, and the signal's reason.
 */
export async function loadImage(
  deps: ImageDeps,
  reader: ImageReader,
  source: ImageSource,
  signal: AbortSignal,
): Promise<Loaded> {
  signal.throwIfAborted()
  const { organizationId, maxEdge } = reader
  const key = `${maxEdge} ${source.type} ${source.value}`
  const cached = deps.images.get(organizationId, key)
  if (cached !== undefined) return cached
  const owner = await deps.owners.ownerOf(organizationId)
  const load = async (): Promise<Loaded> => {
    const read = await readBytes(deps, reader, source, signal)
    if (read === 'not_found') return read
    const result = 'problem' in read ? read : await fitImage(owner, read.bytes, maxEdge, signal)
    deps.images.set(organizationId, key, result)
    return result
  }
  return deps.imageLoads.run({ owner }, load, refuse, signal)
}

const refuse = (): never => {
  throw busy()
}

async function readBytes(
  deps: ImageDeps,
  reader: ImageReader,
  { type, value }: ImageSource,
  signal: AbortSignal,
): Promise<ImageBytes | 'not_found'> {
  if (type === 'base64') return { bytes: Buffer.from(value, 'base64') }
  if (type === 'url') return isDataUrl(value) ? readDataUrl(value) : fetchBytes(deps, value, signal)
  const bytes = await reader.read(value)
  return bytes === undefined ? 'not_found' : { bytes }
}

const fetchBytes = ({ outgoing, log }: ImageDeps, url: string, signal: AbortSignal): Promise<ImageBytes> =>
  fetchImage(outgoing, url, signal).catch((error) => {
    signal.throwIfAborted()
    if (error instanceof OutgoingError) return { problem: error.message }
    warnRarely(log, { err: error }, 'an image of a message could not be fetched')
    return { problem: 'It could not be fetched.' }
  })
