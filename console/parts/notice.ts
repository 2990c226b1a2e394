import { organization, sentenceOf } from '../service.ts'
import { effect, html, signal, useEffect, type VNode } from '../ui.ts'
import { Icon } from './icon.ts'

type Link = { text: string; href: string }
type Notice = { id: number; text: string; isProblem: boolean; link?: Link | undefined }

const notices = signal<Notice[]>([])
/** Time for which a good notice is shown. Problems stay until they are dismissed. */
const SHOWN_MS = 6000
const MAX_NOTICES = 4
// Notices of another organization go.
effect(() => {
  if (organization.value !== '') notices.value = []
})
let last = 0

const add = (text: string, isProblem: boolean, to?: Link): void => {
  notices.value = [...notices.value, { id: ++last, text, isProblem, link: to }].slice(-MAX_NOTICES)
}
const remove = (id: number): void => {
  notices.value = notices.value.filter((notice) => notice.id !== id)
}

/** Shows a sentence for some seconds at the edge of the page, with a link to what it is about. */
export const notify = (text: string, to?: Link): void => add(text, false, to)
/** Shows an error at the edge of the page until it is dismissed. */
export const notifyProblem = (error: unknown): void => add(sentenceOf(error), true)

/** Notices of the page. */
export const Notices = (): VNode =>
  html`<div class="notices">${notices.value.map((notice) => html`<${One} key=${notice.id} notice=${notice} />`)}</div>`

function One({ notice: { id, text, isProblem, link } }: { notice: Notice }): VNode {
  useEffect(() => {
    if (isProblem) return
    const timer = setTimeout(remove, SHOWN_MS, id)
    return () => clearTimeout(timer)
  }, [])
  return html`<div class=${isProblem ? 'notice bad' : 'notice'} role=${isProblem ? 'alert' : 'status'}>
    <${Icon} name=${isProblem ? 'alert' : 'check'} /><span dir="auto">${text}${link && html` <a href=${link.href}>${link.text}</a>`}</span>
    <button type="button" class="ghost" aria-label="Dismiss" onClick=${() => remove(id)}><${Icon} name="cross" /></button>
  </div>`
}
