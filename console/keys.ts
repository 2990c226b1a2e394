import { signal, useEffect, useRef } from './ui.ts'

/** Action of a key, and the words that tell people about it: "Next session". */
export type Key = { about: string; run(event: KeyboardEvent): void }
/** Actions by the names of their keys, as in `KeyboardEvent.key`. */
export type Keys = Record<string, Key>

/** Keys of all views that are shown. */
export const registered = signal<Keys[]>([])

/** Places in which keys have their own meaning. */
const TYPED = 'input, textarea, select, [contenteditable], [role=menu], dialog'

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return
  const target = event.target instanceof Element ? event.target : document.body
  if (target.closest(TYPED) || document.querySelector('dialog[open]')) return
  // Links and buttons are used by these.
  if (/^(Enter| )$/.test(event.key) && target.closest('a, button, summary')) return
  const key = registered.value.findLast((keys) => Object.hasOwn(keys, event.key))?.[event.key]
  if (key === undefined) return
  event.preventDefault()
  key.run(event)
})

/** Gives keys a meaning while a view is shown. They are ignored in entries, dialogs and menus, and with modifiers. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys)
  latest.current = keys
  useEffect(() => {
    const entries = Object.entries(keys).map(([name, { about }]): [string, Key] => [
      name,
      { about, run: (event) => latest.current[name]?.run(event) },
    ])
    const mine = Object.fromEntries(entries)
    registered.value = [...registered.value, mine]
    return () => {
      registered.value = registered.value.filter((other) => other !== mine)
    }
  }, [Object.keys(keys).join(' ')])
}
