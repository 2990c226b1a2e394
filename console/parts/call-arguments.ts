import { html, useMemo, type VNode } from '../ui.ts'
import { LongText } from './long-text.ts'

type Props = { name: string; given: Record<string, unknown> | undefined }

/** Arguments of a call: a single text unchanged, others as JSON. */
export function CallArguments({ name, given = {} }: Props): VNode | null {
  const [first, ...others] = Object.entries(given)
  const { title, text } = useMemo(
    () =>
      others.length === 0 && typeof first?.[1] === 'string'
        ? { title: first[0], text: first[1] }
        : { title: 'Arguments', text: JSON.stringify(given, null, 2) },
    [given],
  )
  if (first === undefined) return null
  return html`<p class="label" dir="auto">${title}</p><${LongText} text=${text} label=${`Arguments of ${name}`} />`
}
