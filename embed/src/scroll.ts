/** Distance from the end within which the reader counts as being at the end, in pixels. */
const END_PX = 60

/** Keeps the end of `box` in view while `content` grows, until the reader scrolls up. Returns a way back to the end. */
export function stickToEnd(box: HTMLElement, content: HTMLElement): { goToEnd(): void } {
  let isAtEnd = true
  let before = 0
  const stay = () => {
    if (!isAtEnd) return
    box.scrollTop = box.scrollHeight
    before = box.scrollTop
  }
  box.addEventListener(
    'scroll',
    () => {
      const { scrollHeight, clientHeight, scrollTop } = box
      // The content may have grown before the event, so only an upward scroll is the reader's.
      if (scrollHeight - clientHeight - scrollTop < END_PX) isAtEnd = true
      else if (scrollTop < before) isAtEnd = false
      before = scrollTop
    },
    { passive: true },
  )
  box.addEventListener('click', ({ target }) => {
    // The details that the reader opens stay where they are.
    if (target instanceof Element && target.closest('summary')) isAtEnd = false
  })
  const growth = new ResizeObserver(stay)
  growth.observe(content)
  growth.observe(box)
  return {
    goToEnd: () => {
      isAtEnd = true
      stay()
    },
  }
}
