import { html, useEffect, useState, type VNode } from '../ui.ts'
import { Icon } from './icon.ts'

const SHOWN_MS = 2000

/** Icon that copies a text. Browsers let pages copy over TLS and on localhost only. */
export function IconCopy({ text, label }: { text: string; label: string }): VNode | null {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(setCopied, SHOWN_MS, false)
    return () => clearTimeout(timer)
  }, [isCopied])
  if (navigator.clipboard === undefined) return null
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(true))
  return html`<button type="button" class="ghost copy" aria-label=${label} title=${label} onClick=${copy}>
    <${Icon} name=${isCopied ? 'check' : 'copy'} /><span class="unseen" role="status">${isCopied ? 'Copied.' : ''}</span></button>`
}

/** Id of a thing, to be copied into a program. */
export const CopyId = ({ id }: { id: string }): VNode =>
  html`<span class="copy-id"><code>${id}</code><${IconCopy} text=${id} label="Copy the id" /></span>`
