import { computed, signal } from './ui.ts'
import { mayLeave } from './unsaved.ts'

/** Address within the console: `#/sessions/session_1/turns?tool=bash`. */
export type Route = { path: string[]; query: URLSearchParams }

const PLACE = 'console.place'
/** Keeps the place for when the browser comes back from where it signs in, which does not know it. */
export const rememberPlace = (): void => sessionStorage.setItem(PLACE, location.hash)

const remembered = sessionStorage.getItem(PLACE)
sessionStorage.removeItem(PLACE)
if (remembered && location.hash === '') history.replaceState(null, '', remembered)

const fragment = signal(location.hash)
addEventListener('hashchange', () => {
  const pathOf = (hash: string) => hash.split('?')[0]
  if (pathOf(location.hash) === pathOf(fragment.value) || mayLeave()) fragment.value = location.hash
  else history.replaceState(null, '', fragment.value || location.pathname)
})

export const route = computed<Route>(() => {
  const [path = '', query = ''] = fragment.value.replace(/^#\/?/, '').split('?')
  return { path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) }
})

/** Addresses that people break are no errors. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** Returns the link to a place: `link('sessions', id)`. */
export const link = (...path: string[]): string => `#/${path.map(encodeURIComponent).join('/')}`

/** Goes to a place. `replace` keeps it out of the history. */
export function go(to: string, { replace = false } = {}): void {
  if (!replace) {
    location.hash = to
    return
  }
  history.replaceState(null, '', to)
  fragment.value = location.hash
}
