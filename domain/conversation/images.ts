import type { ContentPart, Message } from '../../contract/messages.ts'
import { findImages, type ImageSource } from './image-sources.ts'
import { type ImageDeps, type ImageReader, type Loaded, loadImage } from './load-image.ts'

const MAX_AT_ONCE = 4
/** Maximum total size of the images of one call: about what providers accept in one request. */
const MAX_TOTAL_BYTES = 32 * 1024 * 1024
/** Time after which no further image is loaded. */
const TOTAL_TIMEOUT_MS = 60_000

const LEFT_OUT = { problem: 'The images of this conversation are too many or too large together.' }

/**
 * Replaces the images of user messages and tool results with data that the model accepts: uploaded images, images given
 * by address, and large ones. An unavailable image becomes a text with the reason. Throws errors of the record, and the
 * signal's reason when `signal` aborts.
 */
export async function loadImages(
  deps: ImageDeps,
  reader: ImageReader,
  messages: Message[],
  signal: AbortSignal,
): Promise<Message[]> {
  const { sources, keptBytes } = findImages(messages, reader.maxEdge)
  if (sources.size === 0) return messages
  const maxBytes = MAX_TOTAL_BYTES - keptBytes
  const wanted = await distinct(reader, sources)
  const ended = new AbortController()
  const either = AbortSignal.any([signal, ended.signal])
  const load = (source: ImageSource) => loadImage(deps, reader, source, either)
  // When one image fails the call, the others are not loaded in vain.
  const results = await loadAll(wanted, maxBytes, load).finally(() => ended.abort())
  const parts = chooseNewest(sources, results, maxBytes)
  return messages.map((message) =>
    message.content.some((part) => parts.has(part))
      ? { ...message, content: message.content.map((part) => parts.get(part) ?? part) }
      : message,
  )
}

type Results = Map<string, Loaded>
const keyOf = ({ type, value }: ImageSource): string => `${type} ${value}`

/** Returns each source once, in order, without uploaded images that do not exist. */
async function distinct(reader: ImageReader, sources: Map<ContentPart, ImageSource>): Promise<ImageSource[]> {
  const all = [...new Map([...sources.values()].map((source) => [keyOf(source), source])).values()]
  const ids = all.flatMap(({ type, value }) => (type === 'image_file' ? [value] : []))
  if (ids.length === 0) return all
  const existing = await reader.existing(ids)
  return all.filter(({ type, value }) => type !== 'image_file' || existing.has(value))
}

/** Loads images in order, until they exceed the total size or time. */
async function loadAll(
  sources: ImageSource[],
  maxBytes: number,
  load: (source: ImageSource) => Promise<Loaded>,
): Promise<Results> {
  const results: Results = new Map()
  const endsAt = performance.now() + TOTAL_TIMEOUT_MS
  const waiting = sources.values()
  let sizeBytes = 0
  const work = async () => {
    for (const source of waiting) {
      const isOver = sizeBytes >= maxBytes || performance.now() > endsAt
      const result = isOver ? LEFT_OUT : await load(source)
      results.set(keyOf(source), result)
      sizeBytes += sizeOf(result)
    }
  }
  await Promise.all(Array.from({ length: MAX_AT_ONCE }, work))
  return results
}

const sizeOf = (result: Loaded): number => (typeof result === 'object' && 'base64' in result ? result.sizeBytes : 0)

/** Keeps the newest images that fit together, and omits the others. */
function chooseNewest(
  sources: Map<ContentPart, ImageSource>,
  results: Results,
  maxBytes: number,
): Map<ContentPart, ContentPart> {
  let leftBytes = maxBytes
  const partOf = (source: ImageSource): ContentPart => {
    const result = results.get(keyOf(source)) ?? 'not_found'
    const size = sizeOf(result)
    leftBytes -= size
    return toPart(source, leftBytes < 0 && size > 0 ? LEFT_OUT : result)
  }
  return new Map([...sources].map(([part, source]) => [part, partOf(source)]))
}

function toPart({ value }: ImageSource, result: Loaded): ContentPart {
  if (result === 'not_found') return { type: 'text', text: `[image not found: ${value}]` }
  if ('problem' in result) return { type: 'text', text: `[image not available: ${result.problem}]` }
  return { type: 'image', base64: result.base64, media_type: result.mediaType }
}
