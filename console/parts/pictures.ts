import type { ContentPart } from 'agent-session-client'
import { fetchBlob } from '../service.ts'
import { html, useEffect, useState, type VNode } from '../ui.ts'
import { Problem } from './page.ts'
import { plain } from './plain.ts'

/** Images stored in the service; others are links. */
export function Pictures({ content }: { content: ContentPart[] }): VNode {
  return html`${content.map((part, index) => {
    if (part.type === 'image_file')
      return html`<${Picture} key=${index} id=${part.image_id} name=${part.filename ?? 'Picture'} />`
    if (part.type !== 'image') return null
    if (part.base64) {
      const type = /^image\/(png|jpeg|gif|webp)$/.test(part.media_type ?? '') ? part.media_type : 'image/png'
      return html`<img class="picture" key=${index} src=${`data:${type};base64,${part.base64}`} alt="Picture" />`
    }
    const isLink = /^https?:/.test(part.url ?? '')
    return isLink && html`<a key=${index} href=${part.url} target="_blank" rel="noopener noreferrer">${part.url}</a>`
  })}`
}

/** Image stored in the service. It is fetched with the user's credentials. */
function Picture({ id, name }: { id: string; name: string }): VNode {
  const [source, setSource] = useState<string | undefined>(undefined)
  const [isLarge, setLarge] = useState(false)
  const [error, setError] = useState<unknown>(undefined)
  useEffect(() => {
    let url: string | undefined
    let isWanted = true
    fetchBlob(`/v1/images/${encodeURIComponent(id)}${isLarge ? '' : '/thumbnail'}`).then((blob) => {
      if (!isWanted) return
      url = URL.createObjectURL(blob)
      setSource(url)
    }, setError)
    return () => {
      isWanted = false
      if (url !== undefined) URL.revokeObjectURL(url)
    }
  }, [id, isLarge])
  return html`<${Problem} error=${error} />${
    source &&
    html`<button type="button" class="plain" title=${isLarge ? 'Smaller' : 'Larger'} aria-pressed=${isLarge} onClick=${() => setLarge(!isLarge)}>
      <img class="picture" src=${source} alt=${plain(name)} /></button>`
  }`
}
