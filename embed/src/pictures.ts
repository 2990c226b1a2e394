import type { Client, ContentPart } from 'agent-session-client'
import { h } from './dom.ts'
import { safeHref } from './markdown-inline.ts'
import { plain } from './plain.ts'

/** Shows the images of messages and results. `close` releases their memory. */
export type Pictures = { show(content: ContentPart[]): HTMLElement[]; close(): void }

export function createPictures(client: Client): Pictures {
  const urls = new Set<string>()
  const sourceOf = (blob: Blob): string => {
    const url = URL.createObjectURL(blob)
    urls.add(url)
    return url
  }
  /** Stored image: its thumbnail, and the whole image when pressed. */
  const stored = (image_id: string, name: string): HTMLElement => {
    const image = h('img', { part: 'image', alt: plain(name) })
    const box = h('button', { type: 'button', class: 'picture', title: 'Larger', hidden: true }, image)
    const place = h('span', {}, box)
    const load = async (size: 'get' | 'getThumbnail') => {
      image.src = sourceOf(await client.images[size]({ image_id }))
      box.hidden = false
    }
    box.addEventListener('click', () => void load('get').catch(() => {}), { once: true })
    load('getThumbnail').catch(() => place.replaceChildren(h('span', { class: 'quiet' }, `[image: ${plain(name)}]`)))
    return place
  }
  const given = (base64: string, type: string): HTMLElement => {
    try {
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
      // Any other type might be a document with scripts.
      const safe = /^image\/(?:png|jpeg|gif|webp)$/.test(type) ? type : 'image/png'
      return h('img', { part: 'image', alt: 'Image', src: sourceOf(new Blob([bytes], { type: safe })) })
    } catch {
      return h('span', { class: 'quiet' }, '[image]')
    }
  }
  const shown = (part: ContentPart): HTMLElement[] => {
    if (part.type === 'image_file') return [stored(part.image_id, part.filename ?? 'Image')]
    if (part.type !== 'image') return []
    if (part.base64) return [given(part.base64, part.media_type ?? '')]
    const href = safeHref(part.url ?? '')
    // Loading it would tell its server who reads this.
    return href === undefined
      ? []
      : [h('a', { href, target: '_blank', rel: 'noopener noreferrer', part: 'link' }, href)]
  }
  return {
    show: (content) => content.flatMap(shown),
    close: () => {
      for (const url of urls) URL.revokeObjectURL(url)
      urls.clear()
    },
  }
}
