import { sentenceOf } from '../service.ts'
import { type ComponentChildren, html, useEffect, useState, type VNode } from '../ui.ts'
import { useFocusFallback } from './focus.ts'
import { plain } from './plain.ts'

/** Frame of a view: its actions, and its heading, which takes the focus when the view opens. */
export function Page(props: { title: string; actions?: ComponentChildren; children?: ComponentChildren }): VNode {
  const { title, actions, children } = props
  useEffect(() => {
    document.title = plain(`${title} · Console`)
  }, [title])
  useEffect(() => document.querySelector<HTMLElement>('h1')?.focus(), [])
  return html`<main id="main">
    <header class="row"><h1 tabindex="-1" dir="auto">${title}</h1><div class="actions">${actions}</div></header>
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

/**
 * Button that calls the service. It shows the sentence that `run` returns, or the error. While it runs it keeps the
 * focus, which a disabled button would lose.
 */
export function ActionButton(props: {
  run: () => Promise<unknown>
  /** Question to confirm first. */
  question?: string
  className?: string
  /** Finds the next element for the focus if the button is removed. Default: the heading of the page. */
  fallback?: () => HTMLElement | null
  children?: ComponentChildren
}): VNode {
  const { run, question, className = '', fallback, children } = props
  const place = useFocusFallback(fallback)
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(undefined)
  const [outcome, setOutcome] = useState('')
  const click = async () => {
    if (isBusy) return
    if (question !== undefined && !confirm(plain(question))) return
    setBusy(true)
    setError(undefined)
    const result = await run().catch(setError)
    setOutcome(typeof result === 'string' ? result : '')
    setBusy(false)
  }
  return html`<span class="action" ref=${place}>
    <button type="button" class=${className} aria-disabled=${isBusy} onClick=${click}>${children}</button>
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
  return html`<${ActionButton} run=${copy}>Copy<//>`
}

function timeIn(time: Date, zone: string | undefined): string {
  if (zone === undefined) return time.toLocaleString()
  const style = { dateStyle: 'medium', timeStyle: 'long' } as const
  try {
    return time.toLocaleString(undefined, { ...style, timeZone: zone })
  } catch {
    // The service knows the zone, but this browser does not.
    return time.toLocaleString(undefined, style)
  }
}

/** Point in time, in the reader's own format, and in the reader's time zone unless another one is given. */
export function Time({ at, zone }: { at: string | null | undefined; zone?: string }): VNode | null {
  if (!at) return null
  return html`<time datetime=${at} title=${at}>${timeIn(new Date(at), zone)}</time>`
}
