import { html, useState, type VNode } from '../../ui.ts'
import { type Fold, folded, type Line } from './lines.ts'

/** What is shown at first. */
const SHOWN_LINES = 40
const SHOWN_CHARACTERS = 4000
/** Longest line that is shown at first. */
const LINE_CHARACTERS = 1000

const MARKS = { same: ' ', added: '+', removed: '-' }

type Props = {
  lines: Line[]
  label: string
  /** Number of the first line in its file. Default: 1. */
  first?: number | 'unknown'
  isDifference?: boolean
}

/** Lines with their numbers. Of a difference only the lines around the changes are shown, and at first not all. */
export function CodeLines({ lines, label, first = 1, isDifference = false }: Props): VNode {
  const [isWhole, setWhole] = useState(false)
  const all = isDifference && !isWhole ? folded(lines) : lines
  const some = isWhole ? all : beginningOf(all)
  const isCut = some !== all || all.length < lines.length
  return html`<div class="code-lines" tabindex="0" role="group" aria-label=${label}>${some.map(
    (line, index) => html`<${Row} key=${index} line=${line} first=${first} isDifference=${isDifference} />`,
  )}</div>
    ${
      (isCut || isWhole) &&
      html`<button type="button" aria-expanded=${isWhole} onClick=${() => setWhole(!isWhole)}>
        ${isWhole ? 'Show less' : `Show all ${lines.length.toLocaleString()} ${lines.length === 1 ? 'line' : 'lines'}`}</button>`
    }`
}

/** Returns the first lines, and the same list if nothing has to be left out. */
function beginningOf(lines: (Line | Fold)[]): (Line | Fold)[] {
  let characters = 0
  const end = lines.findIndex((line, index) => {
    characters += line.kind === 'fold' ? 0 : line.text.length
    return index >= SHOWN_LINES || (index > 0 && characters > SHOWN_CHARACTERS)
  })
  const shown = end < 0 ? lines : lines.slice(0, end)
  if (shown.every((line) => line.kind === 'fold' || line.text.length <= LINE_CHARACTERS)) return shown
  return shown.map((line) => (line.kind === 'fold' ? line : { ...line, text: shortened(line.text) }))
}

const shortened = (text: string): string =>
  text.length <= LINE_CHARACTERS ? text : `${text.slice(0, LINE_CHARACTERS).toWellFormed()}…`

type RowProps = { line: Line | Fold } & Required<Omit<Props, 'lines' | 'label'>>

function Row({ line, first, isDifference }: RowProps): VNode {
  if (line.kind === 'fold')
    return html`<div class="line fold">${line.count.toLocaleString()} unchanged ${line.count === 1 ? 'line' : 'lines'}</div>`
  const { kind, text, of, to } = line
  const number = first === 'unknown' ? '' : (of ?? to ?? 0) + first - 1
  // Numbers and marks are not copied with the text.
  return html`<div class=${`line ${kind}`}>
    <span class="number" data-text=${isDifference ? `${number} ${MARKS[kind]}` : number}></span><span class="line-text" dir="auto">${text === '' ? '\n' : text}</span>
  </div>`
}
