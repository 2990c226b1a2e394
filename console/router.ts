import { computed, signal } from './ui.ts'
import { mayLeave } from './unsaved.ts'

/** Address within the console: `#/sessions/session_1/turns?tool=bash`. */
export type Route = { path: string[]; query: URLSearchParams }

const PLACE = 'console.place'
/** Remembers the place while the browser is at an identity provider, which does not keep it. */
export const rememberPlace = (): void => sessionStorage.setItem(PLACE, location.hash)

/** Position in the history of the tab, which is kept with each entry. */
let position: number = history.state?.position ?? 0
const replace = (to: string): void => history.replaceState({ position }, '', to)

const remembered = sessionStorage.getItem(PLACE)
sessionStorage.removeItem(PLACE)
replace(remembered && location.hash === '' ? remembered : location.href)

const fragment = signal(location.hash)
/** Target of `go`, which never asks before leaving. A user who follows a link may be asked. */
let chosen: string | undefined
addEventListener('hashchange', () => {
  const { hash } = location
  const there: number | undefined = history.state?.position
  const isSame = hash.split('?')[0] === fragment.value.split('?')[0]
  if (!isSame && hash !== chosen && !mayLeave()) {
    // A new entry has no position yet: go back by one.
    history.go(there === undefined ? -1 : position - there)
    return
  }
  chosen = undefined
  position = there ?? position + 1
  if (there === undefined) replace(hash)
  fragment.value = hash
})

export const route = computed<Route>(() => {
  const [path = '', query = ''] = fragment.value.replace(/^#\/?/, '').split('?')
  return { path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) }
})

/** Decodes a segment, and returns an invalid one unchanged. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** Returns the link to a place: `link('sessions', id)`. */
export const link = (...path: string[]): string => `#/${path.map(encodeURIComponent).join('/')}`

/** Goes to a place, without asking about unsaved input. `replace` keeps it out of the history. */
export function go(to: string, { replace: isReplacing = false } = {}): void {
  if (!isReplacing) {
    chosen = to
    location.hash = to
    return
  }
  replace(to)
  fragment.value = location.hash
}
