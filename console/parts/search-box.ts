import { html, useEffect, useRef, type VNode } from '../ui.ts'

/** Pause in typing that starts a search. */
const TYPING_MS = 250

type Props = {
  /** Text that is searched for now, as the address has it. */
  text: string
  /** Name for screen readers, such as `Search agents`. */
  label: string
  placeholder?: string
  maxLength?: number
  onSearch(text: string): void
}

/** Searches while the user types, and at once on Enter. */
export function SearchBox({ text, label, placeholder = 'Search', maxLength, onSearch }: Props): VNode {
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
  const type = () => {
    clearTimeout(timer.current)
    timer.current = setTimeout(search, TYPING_MS)
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    search()
  }
  return html`<form role="search" aria-label=${label} class="search" onSubmit=${submit}>
    <label class="unseen" for="search">${label}</label>
    <input id="search" ref=${box} type="search" maxlength=${maxLength} defaultValue=${text} placeholder=${placeholder} autocomplete="off" dir="auto" onInput=${type} />
  </form>`
}
