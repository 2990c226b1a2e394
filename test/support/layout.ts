import type { Page } from 'playwright-core'

/** Elements that scroll sideways on purpose. */
const SCROLLING = 'pre, textarea, .text, .wide, .markdown table'

/** Spaces at the end of a line and turning icons stick out by a few pixels. */
const TOLERANCE_PX = 4

/**
 * Lists what has no room in a page, as it is drawn next: the page itself if it scrolls sideways, elements that are wider
 * than what contains them, and contents that scroll sideways though nobody meant them to.
 */
const LOOK = `(async () => {
  for (let frames = 2; frames > 0; frames--) await new Promise(requestAnimationFrame)
  const found = new Set()
  const nameOf = (element) => element.localName + [...element.classList].map((name) => '.' + name).join('')
  const { scrollWidth } = document.documentElement
  if (scrollWidth > innerWidth) found.add('the page is ' + scrollWidth + ' px wide')
  const boxOf = (element) => {
    let box = element.parentElement
    while (box && /^(inline|contents)$/.test(getComputedStyle(box).display)) box = box.parentElement
    return box
  }
  const look = (root) => {
    for (const element of root.querySelectorAll('*:not(svg *)')) {
      if (element.shadowRoot) look(element.shadowRoot)
      const { left, right, width } = element.getBoundingClientRect()
      const box = width > 1 && boxOf(element)
      if (!box) continue
      const style = getComputedStyle(element)
      if (style.overflowX === 'auto' && element.scrollWidth > element.clientWidth + 1 && !element.matches('${SCROLLING}'))
        found.add(nameOf(element) + ' scrolls sideways')
      if (/^(absolute|fixed)$/.test(style.position) || getComputedStyle(box).overflowX !== 'visible') continue
      const outer = box.getBoundingClientRect()
      const [before, after] = [style.marginLeft, style.marginRight].map((margin) => Math.min(0, parseFloat(margin)))
      const px = Math.max(right + after - outer.right, outer.left - (left - before))
      if (px > ${TOLERANCE_PX}) found.add(nameOf(box) + ' > ' + nameOf(element) + ' by ' + Math.round(px) + ' px: ' + element.textContent.trim().slice(0, 40))
    }
  }
  look(document)
  return [...found]
})()`

/** Throws if something on the page is wider than the place it has. */
export async function expectRoom(page: Page): Promise<void> {
  const width = page.viewportSize()?.width
  expect({ width, tooWide: await page.evaluate(LOOK) }).toEqual({ width, tooWide: [] })
}
