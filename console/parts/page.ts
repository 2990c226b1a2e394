import { sentenceOf } from '../service.ts'
import { type ComponentChildren, html, useEffect, useState, type VNode } from '../ui.ts'
import { waitingCount } from '../waiting.ts'
import { confirmed } from './dialog.ts'
import { useFocusFallback } from './focus.ts'
import { Icon } from './icon.ts'
import { plain } from './plain.ts'

type PageProps = {
  title: string
  /** Place above this one in the navigation. */
  back?: { title: string; href: string }
  /** Status beside the title. */
  badge?: ComponentChildren
  /** Facts below the title, such as the model, the cost and the age. Empty ones are left out. */
  facts?: ComponentChildren[]
  actions?: ComponentChildren
  /** Class of a page with styles of its own. */
  kind?: string
  children?: ComponentChildren
}

/** Frame of a view: its actions, and its heading, which takes the focus when the view opens. */
export function Page({ title, back, badge, facts = [], actions, kind = '', children }: PageProps): VNode {
  useEffect(() => {
    document.title = plain(`${waitingCount.value > 0 ? `(${waitingCount.value}) ` : ''}${title} · Console`)
  }, [title, waitingCount.value])
  useEffect(() => document.querySelector<HTMLElement>('h1')?.focus(), [])
  const shown = facts.filter((fact) => fact !== undefined && fact !== null && fact !== false && fact !== '')
  return html`<main id="main" class=${kind}>
    <header class="head">
      ${back && html`<nav class="crumbs" aria-label="Breadcrumb"><a href=${back.href}>${back.title}</a><${Icon} name="right" /></nav>`}
      <div class="head-row"><div class="head-title"><h1 tabindex="-1" dir="auto">${title}</h1>${badge}</div><div class="actions">${actions}</div></div>
      ${shown.length > 0 && html`<ul class="facts-strip">${shown.map((fact, index) => html`<li key=${index}>${fact}</li>`)}</ul>`}
    </header>
    ${children}
  </main>`
}

/** Sentence about an error, read out at once. */
export const Problem = ({ error }: { error: unknown }): VNode | null =>
  error === undefined ? null : html`<p class="problem" role="alert">${sentenceOf(error)}</p>`

export const Quiet = ({ children }: { children?: ComponentChildren }): VNode => html`<p class="quiet">${children}</p>`

/** Says that the shown data may be outdated. */
export const Reconnecting = ({ isShown }: { isShown: boolean }): VNode =>
  html`<p class="quiet" role="status">${isShown ? 'The connection is lost. Reconnecting…' : ''}</p>`

type ActionProps = {
  run: () => Promise<unknown>
  /** Question to confirm first, and the label of the button that confirms it. */
  question?: string
  confirm?: string
  className?: string
  icon?: string
  /** Finds the next element for the focus if the button is removed. Default: the heading of the page. */
  fallback?: () => HTMLElement | null
  children?: ComponentChildren
}

/**
 * Button that calls the service. It shows the sentence that `run` returns, or the error. While it runs it keeps the
 * focus, which a disabled button would lose.
 */
export function ActionButton(props: ActionProps): VNode {
  const { run, question, confirm = 'Confirm', className = '', icon, fallback, children } = props
  const place = useFocusFallback(fallback)
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(undefined)
  const [outcome, setOutcome] = useState('')
  const click = async () => {
    if (isBusy) return
    const isDangerous = className.includes('danger')
    if (question !== undefined && !(await confirmed({ title: question, action: confirm, isDangerous }))) return
    setBusy(true)
    setError(undefined)
    const result = await run().catch(setError)
    setOutcome(typeof result === 'string' ? result : '')
    setBusy(false)
  }
  return html`<span class="action" ref=${place}>
    <button type="button" class=${className} aria-disabled=${isBusy} onClick=${click}>${icon && html`<${Icon} name=${icon} />`}${children}</button>
    <${Problem} error=${error} />
    <span role="status">${outcome && ` ${outcome}`}</span>
  </span>`
}

/** Button that copies a text. Browsers let pages copy over TLS and on localhost only. */
export function CopyButton({ text }: { text: string }): VNode | null {
  if (navigator.clipboard === undefined) return null
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    return 'Copied.'
  }
  return html`<${ActionButton} icon="copy" run=${copy}>Copy<//>`
}
