import { link } from '../router.ts'

export type RunPlace = { sessionId: string; turnId: string }

/** Returns the address of the comparison of two runs. */
export const compareLink = (a: RunPlace, b: RunPlace): string =>
  `${link('compare')}?a=${a.sessionId}/${a.turnId}&b=${b.sessionId}/${b.turnId}`
