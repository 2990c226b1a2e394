import { PALETTE_KEY, PLACE_KEYS } from '../key-names.ts'
import { registered } from '../keys.ts'
import { Dialog } from '../parts/dialog.ts'
import { html, type VNode } from '../ui.ts'

/** Names of keys that say more than the browser’s own. */
const NAMES: Record<string, string> = {
  ArrowDown: '↓',
  ArrowUp: '↑',
  ArrowLeft: '←',
  ArrowRight: '→',
  Escape: 'Esc',
  ' ': 'Space',
}

type Line = { keys: string[]; about: string }

const EVERYWHERE: Line[] = [
  { keys: PALETTE_KEY.split(' '), about: 'Search everything' },
  { keys: ['?'], about: 'Show this list' },
  ...Object.entries(PLACE_KEYS).map(([key, { title }]) => ({ keys: ['g', key], about: `Go to ${title}` })),
  { keys: ['Esc'], about: 'Close a dialog or a menu' },
]

/** Sheet of all keys: of this page, and of every page. */
export function View({ onClose }: { onClose(): void }): VNode {
  const here = registered.value
    .flatMap((keys) => Object.entries(keys))
    .filter(([key]) => key !== '?' && key !== 'g')
    .map(([key, { about }]) => ({ keys: [NAMES[key] ?? key], about }))
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${onClose}>
    ${here.length > 0 && html`<${Lines} title="On this page" lines=${here} />`}
    <${Lines} title="Everywhere" lines=${EVERYWHERE} />
  <//>`
}

const Lines = ({ title, lines }: { title: string; lines: Line[] }): VNode => html`<h3>${title}</h3>
  <dl class="keys">${lines.map(
    ({ keys, about }) =>
      html`<div key=${about}><dt>${about}</dt><dd>${keys.map((key) => html`<kbd key=${key}>${key}</kbd> `)}</dd></div>`,
  )}</dl>`
