import { type Field, FieldError, Form, type Values } from '../../parts/form.ts'
import { ActionButton } from '../../parts/page.ts'
import { defaultsOf, fieldsOf } from '../../parts/schema-form.ts'
import { sentenceOf } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'
import type { Asking, Submit } from './asked.ts'

/** Name of the tool by which an agent itself asks its user. */
const ASK_USER = 'ask_user'

/** Question of a tool, with a form for the answer. */
export function Question({ id, call, submit }: Asking): VNode {
  const { message, url, tool, requested_schema } = call.arguments ?? {}
  return html`
    ${typeof tool === 'string' && tool !== ASK_USER && html`<p class="quiet" dir="auto">Asked by ${call.asker ?? tool}</p>`}
    ${typeof message === 'string' && html`<p class="asked" id=${id} dir="auto">${message}</p>`}
    ${typeof url === 'string' && /^https?:/.test(url) ? html`<${Link} url=${url} submit=${submit} />` : html`<${Fields} schema=${requested_schema} submit=${submit} />`}
    <div class="actions">
      <${ActionButton} className="ghost" run=${() => submit({ result: { action: 'decline' } })}>Decline<//>
      <${ActionButton} className="ghost" run=${() => submit({ result: { action: 'cancel' } })}>Dismiss without an answer<//>
    </div>`
}

const Link = ({ url, submit }: { url: string; submit: Submit }): VNode => html`
  <p><a href=${url} target="_blank" rel="noopener noreferrer">${url}</a></p>
  <div class="actions"><${ActionButton} className="primary" run=${() => submit({ result: { action: 'accept' } })}>Done<//></div>`

/** Form of an answer. A single choice of few options has a button for each. */
function Fields({ schema, submit }: { schema: unknown; submit: Submit }): VNode {
  const fields = (fieldsOf(schema) ?? []).map(forPeople)
  const accept = (values: Values) => {
    const content = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))
    return submit({ result: { action: 'accept', content } }).catch((error) => refuse(error, fields))
  }
  const [first, ...others] = fields
  if (first?.kind === 'radios' && first.isRequired && first.options && others.length === 0) {
    const { name, options, hint } = first
    const pick = (value: string) => accept({ [name]: value })
    return html`${hint && html`<p class="quiet" dir="auto">${hint}</p>`}<${Options} options=${options} pick=${pick} />`
  }
  return html`<${Form} fields=${fields} values=${defaultsOf(schema)} action=${first ? 'Answer' : 'OK'} onSubmit=${accept} />`
}

/** Throws the refusal of an answer, about the field that it names first. */
function refuse(error: unknown, fields: Field[]): never {
  const [, problem = ''] = sentenceOf(error).split('the schema of the question: ')
  const field = fields.find(({ name }) => problem.startsWith(`${name} `))
  throw field
    ? new FieldError(
        field.name,
        problem.replace(field.name, () => field.label),
      )
    : error
}

/** Names a field without a title by its words, and shows few options at once. */
function forPeople(field: Field): Field {
  const { name, label, kind, options = [], isRequired } = field
  const words = name.replace(/_/g, ' ')
  const shown = { ...field, label: label === name ? words.charAt(0).toUpperCase() + words.slice(1) : label }
  if (kind !== 'choice' || !areFew(options)) return shown
  return { ...shown, kind: 'radios', options: isRequired ? options : [...options, { value: '', label: 'No answer' }] }
}

type Option = { value: string; label: string }

const MAX_BUTTONS = 8
const MAX_BUTTON_CHARACTERS = 80

/** Reports whether each of some options can have a button. */
export const areFew = (options: Option[]): boolean =>
  options.length <= MAX_BUTTONS && options.every(({ label }) => label.length <= MAX_BUTTON_CHARACTERS)

/** Options of a question as buttons. */
export const Options = ({ options, pick }: { options: Option[]; pick(value: string): Promise<unknown> }): VNode =>
  html`<div class="actions options">${options.map(
    ({ value, label }) =>
      html`<${ActionButton} key=${value} run=${() => pick(value)}><span dir="auto">${label}</span><//>`,
  )}</div>`
