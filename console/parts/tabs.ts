import { link, route } from '../router.ts'
import { html, type VNode } from '../ui.ts'

/** Links between places that belong together, by their paths. */
export function Tabs({ label, places }: { label: string; places: Record<string, string> }): VNode {
  const [current] = route.value.path
  return html`<nav class="tabs" aria-label=${label}>${Object.entries(places).map(
    ([path, title]) =>
      html`<a key=${path} href=${link(path)} aria-current=${path === current ? 'page' : undefined}>${title}</a>`,
  )}</nav>`
}
