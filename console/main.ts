import { App } from './app.ts'
import { html, render } from './ui.ts'

const root = document.createElement('div')
root.id = 'app'
// Removes the text shown while loading.
document.getElementById('boot')?.remove()
document.body.append(root)
render(html`<${App} />`, root)
