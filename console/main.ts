import { App } from './app.ts'
import { PLACES } from './places.ts'
import { html, render } from './ui.ts'

const root = document.createElement('div')
root.id = 'app'
// Removes the text shown while loading.
document.getElementById('boot')?.remove()
document.body.append(root)
render(html`<${App} />`, root)

/** Pause after which all views are loaded, so that they open at once and a deployment takes none from an open page. */
const IDLE_MS = 5000
setTimeout(() => {
  for (const { load } of PLACES) load().catch(() => {})
}, IDLE_MS)
