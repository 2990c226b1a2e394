import { html, useId, useLayoutEffect, useRef, useState, type VNode } from '../ui.ts'
import { confirmed } from './dialog.ts'
import { Icon } from './icon.ts'
import { notify, notifyProblem } from './notice.ts'
import { useOneAtATime } from './one-at-a-time.ts'
import { plain } from './plain.ts'

/** Entry of a menu: a link, or an action. A sentence that `run` returns is shown. */
export type MenuItem = {
  label: string
  icon?: string
  href?: string
  run?(): Promise<unknown>
  isDangerous?: boolean
  /** Question to confirm first. */
  question?: string
}

type Props = { label: string; items: MenuItem[]; icon?: string; text?: string }

/** Button that opens a menu of actions. Escape and clicks elsewhere close it. */
export function Menu({ label, items, icon = 'more', text }: Props): VNode | null {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const menu = useRef<HTMLDivElement>(null)
  const [isOpen, setOpen] = useState(false)
  const once = useOneAtATime()
  // Its entries are in the page only now.
  useLayoutEffect(() => {
    if (!isOpen || !button.current || !menu.current) return
    placeMenu(menu.current, button.current)
    entriesOf(menu.current)[0]?.focus()
  }, [isOpen])
  if (items.length === 0) return null
  const toggle = ({ newState }: ToggleEvent) => setOpen(newState === 'open')
  const choose = async (item: MenuItem) => {
    menu.current?.hidePopover()
    button.current?.focus()
    if (
      item.question &&
      !(await confirmed({ title: plain(item.question), action: item.label, isDangerous: item.isDangerous }))
    )
      return
    await once(item.label, async () => {
      const outcome = await item.run?.()
      if (typeof outcome === 'string' && outcome !== '') notify(outcome)
    }).catch(notifyProblem)
  }
  const press = (event: KeyboardEvent) => menu.current && moveFocus(event, entriesOf(menu.current))
  return html`<span class="menu-place">
    <button type="button" ref=${button} class=${text ? '' : 'ghost'} popovertarget=${id} aria-label=${plain(label)} aria-haspopup="menu" aria-expanded=${isOpen}>
      ${text}<${Icon} name=${icon} /></button>
    <div id=${id} ref=${menu} popover="auto" role="menu" class="menu" aria-label=${plain(label)} onToggle=${toggle} onKeyDown=${press}>
      ${isOpen && items.map((item) => html`<${Entry} key=${item.label} item=${item} onChoose=${() => choose(item)} />`)}
    </div>
  </span>`
}

function Entry({ item, onChoose }: { item: MenuItem; onChoose(): void }): VNode {
  const { label, icon, href, isDangerous } = item
  const content = html`${icon && html`<${Icon} name=${icon} />`}${label}`
  // Other sites open beside this one.
  const target = href?.startsWith('#') ? {} : { target: '_blank', rel: 'noopener noreferrer' }
  return href === undefined
    ? html`<button type="button" role="menuitem" tabindex="-1" class=${isDangerous ? 'danger' : ''} onClick=${onChoose}>${content}</button>`
    : html`<a role="menuitem" tabindex="-1" href=${href} ...${target}>${content}</a>`
}

const entriesOf = (menu: HTMLElement): HTMLElement[] => [...menu.querySelectorAll<HTMLElement>('[role=menuitem]')]

function moveFocus(event: KeyboardEvent, entries: HTMLElement[]): void {
  const at = entries.indexOf(document.activeElement as HTMLElement)
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 }[event.key]
  if (to === undefined) return
  event.preventDefault()
  entries[(to + entries.length) % entries.length]?.focus()
}

const GAP_PX = 4

/** Places a menu below its button, or above where there is no room. */
function placeMenu(menu: HTMLElement, button: HTMLElement): void {
  const { left, right, top, bottom } = button.getBoundingClientRect()
  const { width, height } = menu.getBoundingClientRect()
  const x = right - width >= GAP_PX ? right - width : Math.min(left, innerWidth - width - GAP_PX)
  const y = bottom + GAP_PX + height <= innerHeight ? bottom + GAP_PX : Math.max(GAP_PX, top - height - GAP_PX)
  Object.assign(menu.style, { left: `${Math.max(GAP_PX, x)}px`, top: `${y}px` })
}
