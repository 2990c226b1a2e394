import { h } from './dom.ts'
import { parseMarkdown } from './markdown.ts'
import type { Element, Piece } from './pieces.ts'

/** Shows a formatted text in `place`. While it grows, only its last blocks are replaced. */
export function createFormatted(place: HTMLElement): (text: string) => void {
  let shown: string[] = []
  return (text) => {
    const blocks = parseMarkdown(text)
    const keys = blocks.map((block) => JSON.stringify(block))
    const changed = keys.findIndex((key, index) => key !== shown[index])
    const kept = changed === -1 ? keys.length : changed
    while (place.childNodes.length > kept) place.lastChild?.remove()
    place.append(...blocks.slice(kept).map(draw))
    shown = keys
  }
}

const draw = (piece: Piece): Node | string => (typeof piece === 'string' ? piece : elementOf(piece))

function elementOf({ tag, href, start, children }: Element): HTMLElement {
  const link = tag === 'a' && { href, target: '_blank', rel: 'noopener noreferrer', part: 'link' }
  // The keyboard must be able to scroll a box that is wider than the conversation.
  const box = tag === 'pre' && { tabindex: 0, role: 'group', 'aria-label': 'Code', part: 'code' }
  const direction = ['p', 'ul', 'ol', 'blockquote'].includes(tag) && { dir: 'auto' }
  return h(tag, { ...link, ...box, ...direction, start }, ...children.map(draw))
}
