import { Form, type Values } from '../../parts/form.ts'
import { html, useId, useState, type VNode } from '../../ui.ts'
import type { Submit } from './asked.ts'
import { areFew, Options } from './question.ts'

/** Ways to answer the call of a client's tool. Most people write a text. */
const WAYS = [
  { way: 'text', title: 'Answer as text', label: 'Your answer' },
  { way: 'json', title: 'Answer as JSON', label: 'Your answer as JSON' },
  { way: 'failure', title: 'Report a failure', label: 'What went wrong?' },
] as const

/** Answer of a person to the call of a client's tool. */
export function Answer({ given, submit }: { given: Record<string, unknown>; submit: Submit }): VNode {
  const [way, setWay] = useState<(typeof WAYS)[number]['way']>('text')
  const group = useId()
  const options = optionsOf(given)
  const label = WAYS.find((one) => one.way === way)?.label
  const fields = [{ name: 'result', label, kind: way === 'json' ? 'json' : 'longtext', rows: 3, isRequired: true }]
  const send = ({ result }: Values) => submit(way === 'failure' ? { error: String(result) } : { result })
  return html`
    ${options && html`<${Options} options=${options} pick=${(result: string) => submit({ result })} />`}
    <${Form} fields=${fields} action=${way === 'failure' ? 'Report' : 'Answer'} onSubmit=${send}>
      <details class="ways"><summary>More</summary><fieldset class="field"><legend class="unseen">Kind of answer</legend>${WAYS.map(
        (one) => html`<label key=${one.way} class="check"><input type="radio" name=${group} checked=${one.way === way}
          onChange=${() => setWay(one.way)} />${one.title}</label>`,
      )}</fieldset></details>
    <//>`
}

/** Returns the choices that the arguments of a question offer, if each can have a button. */
function optionsOf({ choices, options = choices }: Record<string, unknown>) {
  if (!Array.isArray(options) || !options.every((option) => typeof option === 'string')) return undefined
  const found = [...new Set<string>(options)].map((value) => ({ value, label: value }))
  return found.length > 0 && areFew(found) ? found : undefined
}
