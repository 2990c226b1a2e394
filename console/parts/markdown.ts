import DOMPurify, { type Config } from 'dompurify'
import { Marked } from 'marked'
import { html, useLayoutEffect, useMemo, useRef, type VNode } from '../ui.ts'
import { plain } from './plain.ts'

const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** HTML in an answer is shown as it was written, and pictures of others are links to them. */
const marked = new Marked({
  gfm: true,
  renderer: {
    html: ({ text }) => escapeHtml(text),
    // Below those of the page.
    heading({ tokens, depth }) {
      const level = Math.min(depth + 2, 6)
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`
    },
    image: ({ href, text }) => `<a href="${escapeHtml(href)}">${escapeHtml(text || href)}</a>`,
  },
})

const ALLOWED: Config & { RETURN_DOM_FRAGMENT: true } = {
  ALLOWED_TAGS:
    'a blockquote br code del em h1 h2 h3 h4 h5 h6 hr input li ol p pre s strong table tbody td th thead tr ul'.split(
      ' ',
    ),
  ALLOWED_ATTR: ['href', 'title', 'start', 'align', 'type', 'checked', 'disabled'],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  RETURN_DOM_FRAGMENT: true,
}

/** Text of a model or a user in Markdown. While it grows, only its last block is drawn again. */
export function Markdown({ text }: { text: string }): VNode {
  const blocks = useMemo(() => marked.lexer(plain(text)).filter(({ type }) => type !== 'space'), [text])
  return html`<div class="markdown">${blocks.map(({ raw }, index) => html`<${Block} key=${index} source=${raw} />`)}</div>`
}

function Block({ source }: { source: string }): VNode {
  const place = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const content = DOMPurify.sanitize(marked.parse(source, { async: false }), ALLOWED)
    for (const anchor of content.querySelectorAll('a')) {
      anchor.target = '_blank'
      anchor.rel = 'noopener noreferrer'
    }
    // Headings of an answer are none of the page's, and a box that is wider than the page is read with the keyboard.
    for (const box of content.querySelectorAll('pre')) box.tabIndex = 0
    for (const input of content.querySelectorAll('input')) input.ariaLabel = input.checked ? 'done' : 'to do'
    place.current?.replaceChildren(content)
  }, [source])
  return html`<div ref=${place} dir="auto"></div>`
}
