import { html, useMemo, useState, type VNode } from '../ui.ts'
import { plain } from './plain.ts'

const SHOWN_CHARACTERS = 4000
const SHOWN_LINES = 60
/** Characters of a piece. A browser lays out only the visible pieces. */
const PIECE_CHARACTERS = 20_000

type Props = { text: string; label: string; className?: string }

/** Text that may be very long, unformatted. At first only its beginning is shown. */
export function LongText({ text, label, className = 'text' }: Props): VNode {
  const [isWhole, setWhole] = useState(false)
  const start = useMemo(() => beginningOf(text), [text])
  return html`<pre class=${className} dir="auto" tabindex="0" role="group" aria-label=${label}><${Pieces} text=${isWhole ? text : start} /></pre>
    ${
      start.length < text.length &&
      html`<button type="button" aria-expanded=${isWhole} onClick=${() => setWhole(!isWhole)}>
        ${isWhole ? 'Show less' : `Show all ${text.length.toLocaleString()} characters`}</button>`
    }`
}

/** Text in pieces, to be placed in a `pre`. */
export function Pieces({ text }: { text: string }): VNode {
  const pieces = useMemo(() => cut(plain(text)), [text])
  // A short text is laid out at once, so that nothing below it moves.
  const className = pieces.length > 1 ? 'piece' : undefined
  return html`${pieces.map((piece, index) => html`<span key=${index} class=${className}>${piece}</span>`)}`
}

function beginningOf(text: string): string {
  let end = -1
  for (let line = 0; line < SHOWN_LINES; line++) {
    end = text.indexOf('\n', end + 1)
    if (end < 0 || end > SHOWN_CHARACTERS) return text.slice(0, between(text, SHOWN_CHARACTERS))
  }
  return text.slice(0, end)
}

/** Returns a position at which a text can be cut: not within a surrogate pair. */
const between = (text: string, at: number): number => (/[\ud800-\udbff]/.test(text[at - 1] ?? '') ? at - 1 : at)

/** Cuts a text into pieces, at line breaks if possible. */
function cut(text: string): string[] {
  const pieces: string[] = []
  for (let from = 0; from < text.length; ) {
    const most = from + PIECE_CHARACTERS
    const lineEnd = text.lastIndexOf('\n', most)
    const to = most < text.length && lineEnd > from ? lineEnd + 1 : between(text, most)
    pieces.push(text.slice(from, to))
    from = to
  }
  return pieces
}
