import type { ContentPart, Message } from '../../contract/messages.ts'
import { OutgoingError } from '../../lib/outgoing/outgoing-error.ts'
import { warnRarely } from '../../lib/warn-rarely.ts'
import type { Deps } from '../deps.ts'
import { fetchImage, type ImageResult, isDataUrl, readDataUrl } from './fetch-image.ts'

type ImageDeps = Pick<Deps, 'outgoing' | 'log' | 'images'>
/** An image that is given by its address only. */
type LinkedImage = Extract<ContentPart, { type: 'image' }> & { url: string }

const MAX_AT_ONCE = 4
/** Size limit of the images of one call together: about what providers take in one request. */
const MAX_TOTAL_BYTES = 32 * 1024 * 1024
/** Time after which no further image is begun. */
const TOTAL_TIMEOUT_MS = 60_000

const LEFT_OUT = { problem: 'The images of this conversation are too many or too large together.' }

/**
 * Replaces the images of user messages and tool results that are given by their address with their data. An image that
 * cannot be had becomes a text that says why. Throws only the signal's reason, when `signal` aborts.
 */
export async function loadImages(
  deps: ImageDeps,
  organizationId: string,
  messages: Message[],
  signal: AbortSignal,
): Promise<Message[]> {
  const newestFirst = messages.toReversed().flatMap(linkedImages)
  if (newestFirst.length === 0) return messages
  const urls = new Set(newestFirst.map(({ url }) => url))
  const results = await loadAll(urls, (url) => loadImage(deps, organizationId, url, signal))
  const shown = chooseNewest(newestFirst, results)
  return messages.map((message) =>
    linkedImages(message).length === 0
      ? message
      : { ...message, content: message.content.map((part) => toPart(part, shown)) },
  )
}

/** Returns the images of a message that have to be loaded, last first. */
const linkedImages = ({ role, content }: Message): LinkedImage[] =>
  role === 'user' || role === 'tool_result' ? content.filter(isLinked).reverse() : []

const isLinked = (part: ContentPart): part is LinkedImage => part.type === 'image' && !part.base64 && !!part.url

/** Loads images in their order, until they are too many together or take too long. */
async function loadAll(
  urls: Set<string>,
  load: (url: string) => Promise<ImageResult>,
): Promise<Map<string, ImageResult>> {
  const results = new Map<string, ImageResult>()
  const endsAt = performance.now() + TOTAL_TIMEOUT_MS
  const waiting = [...urls].values()
  let sizeBytes = 0
  const work = async () => {
    for (const url of waiting) {
      if (sizeBytes >= MAX_TOTAL_BYTES || performance.now() > endsAt) return
      const result = await load(url)
      results.set(url, result)
      if ('base64' in result) sizeBytes += result.sizeBytes
    }
  }
  await Promise.all(Array.from({ length: MAX_AT_ONCE }, work))
  return results
}

async function loadImage(
  { outgoing, log, images }: ImageDeps,
  organizationId: string,
  url: string,
  signal: AbortSignal,
): Promise<ImageResult> {
  signal.throwIfAborted()
  if (isDataUrl(url)) return readDataUrl(url)
  const cached = images.get(organizationId, url)
  if (cached !== undefined) return cached
  const result = await fetchImage(outgoing, url, signal).catch((error) => {
    signal.throwIfAborted()
    if (error instanceof OutgoingError) return { problem: error.message }
    warnRarely(log, { err: error }, 'an image of a message could not be fetched')
    return { problem: 'It could not be fetched.' }
  })
  images.set(organizationId, url, result)
  return result
}

/** Lets the newest images in, as many as fit together, with their result. The older ones are left out. */
function chooseNewest(newestFirst: LinkedImage[], results: Map<string, ImageResult>): Map<ContentPart, ImageResult> {
  const shown = new Map<ContentPart, ImageResult>()
  let leftBytes = MAX_TOTAL_BYTES
  for (const image of newestFirst) {
    const result = results.get(image.url) ?? LEFT_OUT
    if ('base64' in result) leftBytes -= result.sizeBytes
    shown.set(image, leftBytes < 0 && 'base64' in result ? LEFT_OUT : result)
  }
  return shown
}

function toPart(part: ContentPart, shown: Map<ContentPart, ImageResult>): ContentPart {
  const result = shown.get(part)
  if (result === undefined) return part
  if ('problem' in result) return { type: 'text', text: `[image not available: ${result.problem}]` }
  return { type: 'image', base64: result.base64, media_type: result.mediaType }
}
