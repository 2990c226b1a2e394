import { type RefObject, useLayoutEffect, useRef } from '../ui.ts'

/**
 * Returns a ref for an element that may be removed while it has the focus. The focus then moves to `fallbackOf` it, or to
 * the heading of the page.
 */
export function useFocusFallback(
  fallbackOf?: (element: HTMLElement) => HTMLElement | null | undefined,
): RefObject<HTMLElement | null> {
  const ref = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    const element = ref.current
    return () => {
      if (!element?.contains(document.activeElement)) return
      const fallback = fallbackOf?.(element) ?? document.querySelector<HTMLElement>('h1')
      fallback?.focus({ preventScroll: true })
    }
  }, [])
  return ref
}
