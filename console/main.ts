import { App } from './app.ts'
import { PLACES } from './places.ts'
import { html, render } from './ui.ts'

function begin(): void {
  const root = document.createElement('div')
  root.id = 'app'
  // Removes the message shown while loading.
  document.getElementById('boot')?.remove()
  document.body.append(root)
  render(html`<${App} />`, root)
}

// A style that came late, or not at all, no longer holds up this script.
const style = document.querySelector<HTMLLinkElement>('link[rel=stylesheet]')
if (style?.sheet) begin()
else style?.addEventListener('load', begin)

/** Pause after which all views are loaded, so that they open at once and a deployment takes none from an open page. */
const IDLE_MS = 5000
setTimeout(() => {
  for (const { load } of PLACES) load().catch(() => {})
}, IDLE_MS)
