/** Keys that open the palette. */
export const PALETTE_KEY = /Mac|iP(hone|ad)/.test(navigator.userAgent) ? '⌘ K' : 'Ctrl K'

/** Places of the keys that follow `g`. */
export const PLACE_KEYS: Record<string, { path: string; title: string }> = {
  a: { path: 'agents', title: 'agents' },
  s: { path: 'sessions', title: 'sessions' },
  r: { path: 'runs', title: 'runs' },
  i: { path: 'inbox', title: 'inbox' },
}
