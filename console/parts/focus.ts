import { type RefObject, useLayoutEffect, useRef } from '../ui.ts'

/**
 * Returns a ref for an element that may go away while it has the focus, which then goes to another one: `heirOf` it, or
 * the heading of the page.
 */
export function useFocusHeir(
  heirOf?: (element: HTMLElement) => HTMLElement | null | undefined,
): RefObject<HTMLElement | null> {
  const ref = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    const element = ref.current
    return () => {
      if (!element?.contains(document.activeElement)) return
      const heir = heirOf?.(element) ?? document.querySelector<HTMLElement>('h1')
      heir?.focus({ preventScroll: true })
    }
  }, [])
  return ref
}
