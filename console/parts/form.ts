import { ApiError } from 'agent-session-client'
import { sentenceOf } from '../service.ts'
import { type ComponentChildren, html, useEffect, useMemo, useRef, useState, type VNode } from '../ui.ts'
import { useUnsaved } from '../unsaved.ts'
import { AgentSelect } from './agent-select.ts'
import type { Option } from './choice.ts'
import { SessionSelect } from './session-select.ts'

/** One entry of a form. Its value is a string, a number, a boolean, a list of strings, or any JSON. */
export type Field = {
  name: string
  label: string
  /** Name of the value in the service's errors. Default: `name`. */
  path?: string
  kind:
    | 'text'
    | 'longtext'
    | 'secret'
    | 'number'
    | 'boolean'
    | 'choice'
    | 'choices'
    | 'radios'
    | 'agent'
    | 'session'
    | 'lines'
    | 'json'
  hint?: ComponentChildren
  isRequired?: boolean
  /** Attributes of the entry that browsers check, such as `type`, `min` or `step`. */
  limits?: Record<string, string | number>
  /** Kind of value that browsers may fill in. */
  autocomplete?: string
  /** Options of a choice. */
  options?: Option[]
  /** Label of the empty choice. */
  none?: string
  /** Height of a long text, in lines. */
  rows?: number
  /** Value of an empty entry, if the service takes null for "unchanged". */
  empty?: unknown
  /** Draws the whole entry, in place of the kind's own. */
  Entry?(props: EntryProps): VNode
  /** Whether it is among the entries that are folded away at first. */
  isMore?: boolean
}

/** `common` are the attributes of the input whose value is read. `notes` are the hint and the error. */
export type EntryProps = {
  common: { id: string; name: string } & Record<string, unknown>
  label: string
  value: unknown
  notes: VNode
}

/** Values by the names of their fields. An empty entry is null unless its field sets `empty`. */
export type Values = Record<string, unknown>

type Props = {
  fields: Field[]
  values?: Values
  /** Text of the button. */
  action: string
  onSubmit(values: Values): Promise<unknown>
  /** Sentence shown after success. */
  done?: string
  /** Further actions on the entered values. */
  others?: { action: string; run(values: Values): Promise<unknown> }[]
  /** Whether entered values may be discarded without a question. */
  isFleeting?: boolean
  /** Makes the form read-only. */
  isReadOnly?: boolean
  children?: ComponentChildren
}

/** Entry whose text cannot be parsed. */
export class FieldError extends Error {
  readonly field: string
  constructor(field: string, sentence: string) {
    super(sentence)
    this.field = field
  }
}

let number = 0

/** Form of some fields. The service's sentence about a field is shown at that field. */
export function Form(props: Props): VNode {
  const {
    fields,
    values = {},
    action,
    onSubmit,
    done = '',
    others = [],
    isFleeting = false,
    isReadOnly = false,
    children,
  } = props
  const setUnsaved = useUnsaved()
  const id = useMemo(() => `form-${number++}`, [])
  const [isBusy, setBusy] = useState(false)
  const isRunning = useRef(false)
  const [error, setError] = useState<unknown>(undefined)
  const [isDone, setDone] = useState(false)
  const element = useRef<HTMLFormElement>(null)
  // The entry may be far above the button, out of view.
  useEffect(() => {
    const invalid = element.current?.querySelector<HTMLElement>('[aria-invalid=true]')
    invalid?.closest('details')?.setAttribute('open', '')
    // Of a group, its first input.
    ;(invalid?.querySelector('input') ?? invalid)?.focus()
  }, [error])
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    if (isRunning.current) return
    const chosen = (event.submitter as HTMLButtonElement | null)?.value
    const run = others.find((other) => other.action === chosen)?.run ?? onSubmit
    const form = event.target as HTMLFormElement
    setBusy(true)
    isRunning.current = true
    setError(undefined)
    setDone(false)
    try {
      await run(readValues(form, fields))
      if (run === onSubmit) {
        forgetSecrets(form)
        setUnsaved(false)
        setDone(true)
      }
    } catch (problem) {
      setError(problem)
    }
    setBusy(false)
    isRunning.current = false
  }
  const wrong = error === undefined ? undefined : fieldOf(error, fields)
  const entry = (field: Field) =>
    html`<${Entry} key=${field.name} id=${`${id}-${field.name}`} field=${field} value=${values[field.name]}
      error=${wrong === field.name ? sentenceAt(field, error) : undefined} />`
  const more = fields.filter(({ isMore }) => isMore)
  const entries = html`${fields.filter(({ isMore }) => !isMore).map(entry)}
    ${more.length > 0 && html`<details class="more"><summary>More</summary><div class="form">${more.map(entry)}</div></details>`}`
  if (isReadOnly) return html`<fieldset class="form field" disabled>${entries}</fieldset>`
  return html`<form class="form" ref=${element} onSubmit=${submit} onInput=${() => setUnsaved(!isFleeting)}>
    ${entries}
    ${children}
    ${error !== undefined && wrong === undefined && html`<p class="problem" role="alert">${sentenceOf(error)}</p>`}
    <div class="actions"><button class="primary" aria-disabled=${isBusy}>${action}</button>${others.map(
      (other) =>
        html`<button key=${other.action} value=${other.action} aria-disabled=${isBusy}>${other.action}</button>`,
    )}<span role="status">${isDone ? done : ''}</span></div>
  </form>`
}

/** Clears secrets after they have been sent, so that they are neither kept nor sent again. */
function forgetSecrets(form: HTMLFormElement): void {
  for (const input of form.querySelectorAll<HTMLInputElement>('input[type=password]')) input.value = ''
}

/** Reports whether an error names a field or a part of it. */
export const isAbout = (error: unknown, { name, path = name }: Pick<Field, 'name' | 'path'>): boolean =>
  error instanceof ApiError && `${error.field}.`.startsWith(`${path}.`)

/** Finds the field of an error, which names the field or a part of it. */
function fieldOf(error: unknown, fields: Field[]): string | undefined {
  if (error instanceof FieldError) return error.field
  return fields.find((field) => isAbout(error, field))?.name
}

/** Returns the service's sentence about a field, with the field's label instead of its name. */
export function sentenceAt(
  { name, path = name, label }: Pick<Field, 'name' | 'path' | 'label'>,
  error: unknown,
): string {
  const sentence = sentenceOf(error)
  if (!(error instanceof ApiError)) return sentence
  // The path of a part of the value stays in the sentence.
  if (!sentence.startsWith(`${path}: `)) return sentence
  const rest = sentence.slice(path.length + 2)
  return IS_ABOUT.test(rest) ? `${label} ${rest}` : `${rest.charAt(0).toUpperCase()}${rest.slice(1)}`
}

/** Words by which a sentence goes on about its field. */
const IS_ABOUT = /^(must|is|are|has|have|can|cannot|may|needs?|does|was)\b/

function Entry(props: { id: string; field: Field; value: unknown; error: string | undefined }): VNode {
  const { id, field, value, error } = props
  const { label, kind, hint, isRequired = false, options = [], none = '', rows = 8, limits = {} } = field
  // Without a hint, browsers would fill in the user's own password.
  const { autocomplete = kind === 'secret' ? 'new-password' : 'off' } = field
  const name = entryName(field)
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ')
  const common = {
    id,
    name,
    required: isRequired,
    autocomplete,
    'aria-invalid': error === undefined ? undefined : 'true',
    'aria-describedby': described === '' ? undefined : described,
    ...limits,
  }
  const notes = html`
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${error && html`<p class="problem" role="alert" id=${`${id}-error`}>${error}</p>`}`
  if (field.Entry) return html`<${field.Entry} common=${common} label=${label} value=${value} notes=${notes} />`
  if (kind === 'boolean') {
    return html`<div class="field">
      <label class="check"><input type="checkbox" ...${{ ...common, required: false }} defaultChecked=${value === true} />${label}</label>
      ${notes}</div>`
  }
  if (kind === 'choices' || kind === 'radios') {
    const chosen = [value].flat()
    const type = kind === 'radios' ? 'radio' : 'checkbox'
    return html`<fieldset class="field" role=${kind === 'radios' && 'radiogroup'} aria-invalid=${common['aria-invalid']} aria-describedby=${common['aria-describedby']}><legend>${label}</legend>
      ${options.map(
        (option) => html`<label class="check" key=${option.value}><input type=${type} name=${name} value=${option.value}
            required=${kind === 'radios' && isRequired} defaultChecked=${chosen.includes(option.value)} />${option.label}</label>`,
      )}
      ${notes}</fieldset>`
  }
  const text = textOf(value)
  const choice = { value: text, none: isRequired ? undefined : none }
  const control = {
    text: () => html`<input ...${common} defaultValue=${text} dir="auto" />`,
    secret: () => html`<input type="password" ...${common} defaultValue=${text} />`,
    number: () => html`<input type="number" ...${{ step: 'any', ...common }} defaultValue=${text} />`,
    longtext: () => html`<textarea rows=${rows} dir="auto" ...${common} defaultValue=${text}></textarea>`,
    lines: () =>
      html`<textarea rows="3" ...${common} defaultValue=${Array.isArray(value) ? value.join('\n') : text}></textarea>`,
    json: () =>
      html`<textarea rows="6" class="code" spellcheck="false" ...${common} defaultValue=${jsonOf(value)}></textarea>`,
    agent: () => html`<${AgentSelect} ...${common} ...${choice} />`,
    session: () => html`<${SessionSelect} ...${common} ...${choice} />`,
    choice: () => html`<select ...${common}>
      ${!isRequired && html`<option value="">${none}</option>`}
      ${options.map((option) => html`<option value=${option.value} selected=${option.value === value}>${option.label}</option>`)}
    </select>`,
  }[kind]
  return html`<div class="field"><label for=${id}>${label}</label>${control()}${notes}</div>`
}

const textOf = (value: unknown): string => (value === undefined || value === null ? '' : String(value))
const jsonOf = (value: unknown): string => (value === undefined || value === null ? '' : JSON.stringify(value, null, 2))

function readValues(form: HTMLFormElement, fields: Field[]): Values {
  const data = new FormData(form)
  return Object.fromEntries(fields.map((field) => [field.name, readValue(data, field)]))
}

/** Name of the entry in the form. It must not hide the form's own properties, because strangers may name fields. */
const entryName = ({ name }: Field): string => `field-${name}`

function readValue(data: FormData, field: Field): unknown {
  const { label, kind, empty = null } = field
  const name = entryName(field)
  if (kind === 'boolean') return data.has(name)
  if (kind === 'choices') return data.getAll(name)
  const text = String(data.get(name) ?? '')
  if (kind === 'lines')
    return text
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
  if (text.trim() === '') return empty
  if (kind === 'number') return Number(text)
  if (kind !== 'json') return text
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new FieldError(field.name, `${label} is not valid JSON: ${(error as Error).message}`)
  }
}

/** Returns the changed values, for an update. Nothing, '' and 0 count as equal. */
export const changesOf = (values: Values, before: Values): Values =>
  Object.fromEntries(
    Object.entries(values).filter(
      ([name, value]) => JSON.stringify(value || null) !== JSON.stringify(before[name] || null),
    ),
  )

/** Returns the values that are not empty, for a creation. */
export const givenOf = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== ''))
