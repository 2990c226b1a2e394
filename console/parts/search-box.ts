import { html, useEffect, useRef, type VNode } from '../ui.ts'

/** Pause in typing that starts a search. */
const TYPING_MS = 250

type Props = {
  /** Text that is searched for now, as the address has it. */
  text?: string
  /** Name for screen readers, such as `Search agents`. */
  label: string
  placeholder?: string
  onSearch(text: string): void
  /** Further attributes of the entry, such as `id`. */
  [attribute: string]: unknown
}

/** Entry that searches while the user types, and at once on Enter. It may be in a form, which does not notice it. */
export function SearchEntry({ text = '', label, placeholder = label, onSearch, ...attributes }: Props): VNode {
  const box = useRef<HTMLInputElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  useEffect(() => {
    // The address changed without typing.
    if (box.current && document.activeElement !== box.current) box.current.value = text
  }, [text])
  const search = () => {
    clearTimeout(timer.current)
    // The user may have left the list meanwhile.
    if (box.current) onSearch(box.current.value.trim())
  }
  const type = (event: Event) => {
    event.stopPropagation()
    clearTimeout(timer.current)
    timer.current = setTimeout(search, TYPING_MS)
  }
  const press = (event: KeyboardEvent) => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    search()
  }
  return html`<input type="search" ref=${box} maxlength="256" defaultValue=${text} aria-label=${label} placeholder=${placeholder} autocomplete="off" dir="auto"
    ...${attributes} onInput=${type} onKeyDown=${press} />`
}

/** Search of a list, which the key / reaches. */
export const SearchBox = (props: Props): VNode =>
  html`<div role="search" aria-label=${props.label} class="search"><${SearchEntry} id="search" placeholder="Search" ...${props} /></div>`
