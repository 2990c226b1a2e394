import type { ContentPart, Message } from '../../contract/messages.ts'
import { fitsAsItIs } from './fit-image.ts'

/** Place of an image's data: an address, an uploaded image's id, or base64 to be scaled. */
export type ImageSource = { type: 'url' | 'image_file' | 'base64'; value: string }

/** Images of a conversation. */
export type FoundImages = {
  /** Sources of the images to load, newest first. */
  sources: Map<ContentPart, ImageSource>
  /** Total bytes of the images that are sent to the model unchanged. */
  keptBytes: number
}

/** Finds the images of user messages and tool results. */
export function findImages(messages: Message[], maxEdge: number): FoundImages {
  const sources = new Map<ContentPart, ImageSource>()
  let keptBytes = 0
  for (const { role, content } of messages.toReversed()) {
    if (role !== 'user' && role !== 'tool_result') continue
    for (const part of content.toReversed()) {
      const source = sourceOf(part)
      if (source === undefined) continue
      if (isKept(part, maxEdge)) keptBytes += (source.value.length / 4) * 3
      else sources.set(part, source)
    }
  }
  return { sources, keptBytes }
}

const isKept = (part: ContentPart, maxEdge: number): boolean =>
  part.type === 'image' && !!part.base64 && fitsAsItIs(part.base64, maxEdge, part.media_type)

function sourceOf(part: ContentPart): ImageSource | undefined {
  if (part.type === 'image_file') return { type: 'image_file', value: part.image_id }
  if (part.type !== 'image') return undefined
  if (part.base64) return { type: 'base64', value: part.base64 }
  return part.url ? { type: 'url', value: part.url } : undefined
}
