import DOMPurify, { type Config } from 'dompurify'
import { Lexer, Marked } from 'marked'
import { html, useLayoutEffect, useMemo, useRef, type VNode } from '../ui.ts'
import { Pieces } from './long-text.ts'
import { plain } from './plain.ts'

const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** Parser that shows HTML in an answer as text, and images as links. */
const marked = new Marked({
  gfm: true,
  renderer: {
    html: ({ text }) => escapeHtml(text),
    // Keeps headings below the page's own levels.
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
  // Otherwise the values of these attributes would have to match the pattern of addresses.
  ADD_URI_SAFE_ATTR: ['start', 'align', 'type', 'checked', 'disabled'],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  RETURN_DOM_FRAGMENT: true,
}

/** Limits beyond which a text is shown unformatted, because slow regular expressions must not block the page. */
const MAX_CHARACTERS = 50_000
const MAX_BLOCKS = 1000
const MAX_IN_BLOCK: Record<string, number> = { paragraph: 4000, text: 4000, heading: 4000, code: 50_000 }
const MAX_IN_OTHERS = 12_000

/** Text of a model, in Markdown. While it grows, only its last block is redrawn. */
export function Markdown({ text }: { text: string }): VNode {
  const blocks = useMemo(() => blocksOf(text), [text])
  if (blocks === undefined) return html`<${Whole} text=${text} />`
  return html`<div class="markdown">${blocks.map(({ source, isMarkdown }, index) =>
    isMarkdown ? html`<${Block} key=${index} source=${source} />` : html`<${Whole} key=${index} text=${source} />`,
  )}</div>`
}

type TextBlock = { source: string; isMarkdown: boolean }

/** Returns undefined for a text that is too long, has too many blocks, or nests them too deeply. */
export function blocksOf(text: string): TextBlock[] | undefined {
  if (text.length > MAX_CHARACTERS) return undefined
  try {
    const tokens = new Lexer(marked.defaults).blockTokens(plain(text)).filter(({ type }) => type !== 'space')
    if (tokens.length > MAX_BLOCKS) return undefined
    return tokens.map(({ type, raw }) => ({
      source: raw,
      isMarkdown: raw.length <= (MAX_IN_BLOCK[type] ?? MAX_IN_OTHERS),
    }))
  } catch {
    return undefined
  }
}

/** Unformatted text, for a text that is too long for Markdown; it is also visible while it grows. */
const Whole = ({ text }: { text: string }): VNode =>
  html`<pre class="text" dir="auto" tabindex="0" role="group" aria-label="Text"><${Pieces} text=${text} /></pre>`

function Block({ source }: { source: string }): VNode {
  const place = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => place.current?.replaceChildren(draw(source)), [source])
  return html`<div ref=${place} dir="auto"></div>`
}

/** Time for which a button shows its outcome. */
const FEEDBACK_MS = 2000

/** Browsers let pages copy over TLS and on localhost only. */
function addCopyButton(pre: HTMLElement): void {
  if (navigator.clipboard === undefined) return
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = 'Copy'
  button.addEventListener('click', async () => {
    const isCopied = await navigator.clipboard.writeText(pre.textContent ?? '').then(
      () => true,
      () => false,
    )
    button.textContent = isCopied ? 'Copied' : 'Not copied'
    setTimeout(() => {
      button.textContent = 'Copy'
    }, FEEDBACK_MS)
  })
  const box = document.createElement('div')
  box.className = 'code-block'
  pre.replaceWith(box)
  box.append(pre, button)
}

function draw(source: string): DocumentFragment | string {
  let markup: string
  try {
    markup = marked.parse(source, { async: false })
  } catch {
    return source
  }
  const content = DOMPurify.sanitize(markup, ALLOWED)
  for (const anchor of content.querySelectorAll('a')) {
    anchor.target = '_blank'
    anchor.rel = 'noopener noreferrer'
  }
  // The keyboard must be able to scroll a box that is wider than the page.
  for (const box of content.querySelectorAll<HTMLElement>('pre, table')) box.tabIndex = 0
  for (const pre of content.querySelectorAll('pre')) addCopyButton(pre)
  for (const input of content.querySelectorAll('input')) input.ariaLabel = input.checked ? 'done' : 'to do'
  return content
}
