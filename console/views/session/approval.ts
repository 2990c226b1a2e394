import { ApiError } from 'agent-session-client'
import { Form, type Values } from '../../parts/form.ts'
import { ActionButton } from '../../parts/page.ts'
import { html, signal, useEffect, useId, useLayoutEffect, useRef, useState, type VNode } from '../../ui.ts'
import { approvals } from '../../waiting.ts'
import type { Asked, Submit } from './asked.ts'
import { BUDGET } from './conversation.ts'

/** Characters of a reason that the model reads. */
const REASON_CHARACTERS = 1000

/** Button that a key has chosen: pressed again, the key presses it. */
export const chosen = signal<HTMLButtonElement | undefined>(undefined)

/** Ways to decide about a call that waits for approval. */
export function Approval({ call, submit }: { call: Asked; submit: Submit }): VNode {
  const [isExplaining, setExplaining] = useState(false)
  const { name, title = name, arguments: given = {} } = call
  const isBudget = name === BUDGET
  const always = async () => {
    await submit({ result: { approved: true, for: 'session' } }).catch(plainly)
    approvals.value++
  }
  return html`
    ${isBudget && html`<p class="asked" dir="auto">${budgetSentence(given)}</p>`}
    <div class="actions decide">
      <${ActionButton} className="primary approve" run=${() => submit({ result: { approved: true } })}>${isBudget ? 'Raise' : 'Approve'}<//>
      <${ActionButton} className="deny" run=${() => submit({ result: { approved: false } })}>Deny<//>
      ${
        !isBudget &&
        html`<${ActionButton} run=${always} confirm="Approve always"
          question=${`Let “${title}” run without asking for the rest of this session?`}>Always in this session<//>`
      }
      ${!isExplaining && html`<button type="button" class="ghost" onClick=${() => setExplaining(true)}>Deny with a reason</button>`}
      <${Chosen} />
    </div>
    ${isExplaining && html`<${Reason} submit=${submit} onCancel=${() => setExplaining(false)} />`}`
}

/** Says what the key that was pressed does when it is pressed again, and marks its button. */
function Chosen(): VNode {
  const id = useId()
  const place = useRef<HTMLSpanElement>(null)
  const button = chosen.value
  const isHere = button !== undefined && place.current?.parentElement?.contains(button)
  const [key, word] = button?.classList.contains('approve') ? ['a', 'approve'] : ['d', 'deny']
  useEffect(() => {
    if (!isHere) return undefined
    button.setAttribute('aria-describedby', id)
    return () => button.removeAttribute('aria-describedby')
  }, [isHere && button])
  return html`<span ref=${place} id=${id} class="chosen" role="status">${isHere && html`Press <kbd>${key}</kbd> again to ${word}`}</span>`
}

/** Entry for the reason of a denial. */
function Reason({ submit, onCancel }: { submit: Submit; onCancel(): void }): VNode {
  const box = useRef<HTMLDivElement>(null)
  // Before anything moves, which would make the entry inert.
  useLayoutEffect(() => box.current?.querySelector('textarea')?.focus(), [])
  const limits = { maxlength: REASON_CHARACTERS }
  const fields = [
    { name: 'reason', label: 'Reason, for the agent to read', kind: 'longtext', rows: 2, isRequired: true, limits },
  ]
  const deny = ({ reason }: Values) => submit({ result: { approved: false, reason } })
  return html`<div ref=${box} class="reason">
    <${Form} fields=${fields} action="Deny with this reason" onSubmit=${deny}><//>
    <button type="button" class="ghost" onClick=${onCancel}>Cancel</button>
  </div>`
}

/** Question of a budget: `The session's budget of 2.5 USD a day is used up. Raise it by 1 USD?` */
function budgetSentence({ scope, period, limit, raise_by }: Record<string, unknown>): string {
  const whose = scope === 'api_key' ? 'API key' : String(scope)
  const every = period === 'day' || period === 'month' ? ` a ${period}` : ''
  return `The budget of this ${whose}, ${amountOf(limit)}${every}, is used up. Raise it by ${amountOf(raise_by)}?`
}

/** Groups the digits of an amount such as `5000 tokens`. */
function amountOf(amount: unknown): string {
  const [, number, unit] = /^(\d+)( tokens)$/.exec(String(amount)) ?? []
  return number === undefined ? String(amount) : `${Number(number).toLocaleString()}${unit}`
}

/** Translates the refusal of an approval for a session. */
function plainly(error: unknown): never {
  if (error instanceof ApiError && error.field?.endsWith('.result.for'))
    throw new Error('Calls of this tool have to be approved one by one.')
  throw error
}
