import { type RefObject, useEffect, useLayoutEffect, useMemo, useRef } from '../../ui.ts'

/** Turn at the reader's position, and its distance from the top of the window. Undefined at the end. */
export type ReadingPlace = { current: { turnId: string; top: number } | undefined }

/** Time after which a reopened page has settled, unless the reader acts earlier. */
const SETTLING_MS = 10_000
/** Events by which a reader moves or uses a page. */
const READERS_INPUTS = ['wheel', 'touchstart', 'pointerdown', 'keydown'] as const
/** Distance from the end of the page within which the reader counts as being at the end. */
const END_PX = 80

/** Keeps the reader's position when turns are added or removed above it. */
export function useAnchor(chat: RefObject<HTMLElement | null>, first: string | undefined): void {
  // Measured before the page changes.
  const anchor = useMemo(() => {
    const element = chat.current?.firstElementChild
    return element && { element, top: element.getBoundingClientRect().top }
  }, [first])
  useLayoutEffect(() => {
    if (anchor?.element.isConnected) scrollBy(0, anchor.element.getBoundingClientRect().top - anchor.top)
  }, [first])
}

/**
 * Keeps the end in view while the page grows, until the reader scrolls up; `goToEnd` returns there. Late layout, such
 * as of images, grows the page too.
 */
export function useEnd(chat: RefObject<HTMLElement | null>, place: ReadingPlace): { goToEnd(): void } {
  const isAtEnd = useRef(place.current === undefined)
  /** Previous scroll position in pixels from the top. */
  const before = useRef(0)
  /** Position to restore while turns that come into view still grow. */
  const back = useRef(place.current)
  const settle = () => {
    back.current = undefined
  }
  const stay = () => {
    if (back.current) goBackTo(back.current)
    if (back.current || !isAtEnd.current) return
    const page = document.documentElement
    page.scrollTop = page.scrollHeight
    before.current = page.scrollTop
  }
  useEffect(() => {
    const look = () => {
      if (back.current) return
      const { scrollHeight, clientHeight, scrollTop } = document.documentElement
      // The page may have grown before the scroll event, so only an upward scroll is the reader's.
      if (scrollHeight - clientHeight - scrollTop < END_PX) isAtEnd.current = true
      else if (scrollTop < before.current) isAtEnd.current = false
      before.current = scrollTop
    }
    const growth = new ResizeObserver(stay)
    if (chat.current) growth.observe(chat.current)
    addEventListener('scroll', look, { passive: true })
    for (const input of READERS_INPUTS) addEventListener(input, settle, { passive: true })
    return () => {
      growth.disconnect()
      removeEventListener('scroll', look)
      for (const input of READERS_INPUTS) removeEventListener(input, settle)
    }
  }, [])
  useLayoutEffect(() => {
    stay()
    const timer = setTimeout(settle, SETTLING_MS)
    return () => {
      clearTimeout(timer)
      place.current = isAtEnd.current || !chat.current ? undefined : placeIn(chat.current)
    }
  }, [])
  const goToEnd = () => {
    settle()
    isAtEnd.current = true
    stay()
  }
  return { goToEnd }
}

/** Finds the reader's position: the first visible turn. */
function placeIn(chat: HTMLElement): ReadingPlace['current'] {
  const turn = [...chat.children].find((child) => child.getBoundingClientRect().bottom > 0)
  return turn && { turnId: turn.id, top: turn.getBoundingClientRect().top }
}

function goBackTo({ turnId, top }: NonNullable<ReadingPlace['current']>): void {
  const turn = document.getElementById(turnId)
  if (turn) scrollBy(0, turn.getBoundingClientRect().top - top)
}
