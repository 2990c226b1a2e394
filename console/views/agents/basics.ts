import type { LlmModelWithProvider } from 'agent-session-client'
import { isAbout, sentenceAt } from '../../parts/form.ts'
import { link } from '../../router.ts'
import { type ComponentChildren, html, type VNode } from '../../ui.ts'
import type { Settings } from './settings.ts'

type Props = {
  settings: Settings
  models: LlmModelWithProvider[]
  error: unknown
  onChange(changes: Partial<Settings>): void
}

const enteredIn = (event: Event) => (event.target as HTMLInputElement).value

/** Name, prompt, model, description and tags. */
export function Basics({ settings, models, error, onChange }: Props): VNode {
  const { name, system_prompt, default_model_id, description, tags } = settings
  const enter = (field: keyof Settings) => (event: Event) => onChange({ [field]: enteredIn(event) })
  const field = (of: string, label: string, props: Omit<FieldProps, 'id' | 'label' | 'error'>) =>
    html`<${Field} id=${`agent-${of}`} label=${label} error=${isAbout(error, { name: of }) ? sentenceAt({ name: of, label }, error) : undefined} ...${props} />`
  return html`
    ${field('name', 'Name', {
      control: (common) =>
        html`<input ...${common} value=${name} required dir="auto" autocomplete="off" onInput=${enter('name')} />`,
    })}
    ${field('system_prompt', 'Prompt', {
      hint: html`Instructions that the model gets before the conversation. <span class="counter">${system_prompt.length.toLocaleString()} ${system_prompt.length === 1 ? 'character' : 'characters'}</span>`,
      control: (common) =>
        html`<textarea ...${common} class="code agent-prompt" rows="10" required dir="auto" value=${system_prompt} onInput=${enter('system_prompt')}></textarea>`,
    })}
    ${field('default_model_id', 'Model', {
      hint: html`Add a <a href=${link('llm-providers')}>provider</a> for more models.`,
      control: (common) => html`<select ...${common} onChange=${enter('default_model_id')}>
        <option value="" selected=${default_model_id === ''}>the organization’s default</option>
        ${models
          .filter(({ id, status, is_stale }) => id === default_model_id || (status === 'active' && !is_stale))
          .map(
            (model) =>
              html`<option key=${model.id} value=${model.id} selected=${model.id === default_model_id}>${labelOf(model)}</option>`,
          )}</select>`,
    })}
    ${field('description', 'Description', {
      hint: 'Shown in lists, not sent to the model.',
      control: (common) =>
        html`<textarea ...${common} rows="2" dir="auto" value=${description} onInput=${enter('description')}></textarea>`,
    })}
    ${field('tags', 'Tags', {
      hint: 'One per line.',
      control: (common) =>
        html`<textarea ...${common} rows="2" dir="auto" value=${tags} onInput=${enter('tags')}></textarea>`,
    })}`
}

export const labelOf = ({ display_name, is_default, status }: LlmModelWithProvider): string =>
  `${display_name}${is_default ? ' (default)' : ''}${status === 'active' ? '' : ` (${status})`}`

type FieldProps = {
  id: string
  label: string
  hint?: ComponentChildren
  error: string | undefined
  control(common: object): VNode
}

function Field({ id, label, hint, error, control }: FieldProps): VNode {
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ')
  const common = {
    id,
    'aria-invalid': error === undefined ? undefined : 'true',
    'aria-describedby': described === '' ? undefined : described,
  }
  return html`<div class="field"><label for=${id}>${label}</label>${control(common)}
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${error && html`<p class="problem" role="alert" id=${`${id}-error`}>${error}</p>`}</div>`
}
