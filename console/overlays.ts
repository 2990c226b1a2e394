import { PALETTE_KEY, PLACE_KEYS } from './key-names.ts'
import { useKeys } from './keys.ts'
import { Icon } from './parts/icon.ts'
import { notifyProblem } from './parts/notice.ts'
import { link } from './router.ts'
import { html, signal, useEffect, type VNode } from './ui.ts'

type OverlayProps = { onClose(): void; openKeys(): void }
type Overlay = (props: OverlayProps) => VNode

const shown = signal<{ View: Overlay } | undefined>(undefined)
const close = (): void => {
  shown.value = undefined
}

async function open(load: () => Promise<{ View: Overlay }>): Promise<void> {
  try {
    shown.value = await load()
  } catch {
    notifyProblem(new Error('This could not be loaded. Reload the page, and try again.'))
  }
}

const openPalette = (): Promise<void> => open(() => import('./views/palette.ts'))
const openKeys = (): Promise<void> => open(() => import('./views/key-list.ts'))

/** Time within which the second key follows. */
const SECOND_KEY_MS = 1500

/** Goes to the place that the next key names. */
function goByNextKey(): void {
  const hear = (event: KeyboardEvent) => {
    forget()
    const place = PLACE_KEYS[event.key]
    if (place === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    event.stopImmediatePropagation()
    // The browser asks about unsaved input, as for any link.
    location.hash = link(place.path)
  }
  const timer = setTimeout(() => forget(), SECOND_KEY_MS)
  const forget = () => {
    clearTimeout(timer)
    removeEventListener('keydown', hear, true)
  }
  addEventListener('keydown', hear, true)
}

/** Opens the palette and the list of keys, by keys that every page has. */
export function Overlays(): VNode | null {
  useKeys({
    '?': { about: 'Show the keys', run: openKeys },
    g: { about: 'Go to a place', run: goByNextKey },
  })
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isPaletteKey = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k'
      if (!isPaletteKey) return
      event.preventDefault()
      if (shown.value) close()
      else if (!document.querySelector('dialog[open]')) openPalette()
    }
    addEventListener('keydown', press)
    return () => {
      removeEventListener('keydown', press)
      close()
    }
  }, [])
  const { value } = shown
  return value === undefined ? null : html`<${value.View} onClose=${close} openKeys=${openKeys} />`
}

/** Button that opens the palette. On phones it is an icon. */
export const SearchButton = (): VNode =>
  html`<button type="button" class="search-button" aria-keyshortcuts="Control+K Meta+K" onClick=${openPalette}>
    <${Icon} name="search" /><span>Search…</span><kbd aria-hidden="true">${PALETTE_KEY}</kbd></button>`
