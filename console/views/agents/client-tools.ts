import type { ToolDefinition } from 'agent-session-client'
import { Icon } from '../../parts/icon.ts'
import { html, useRef, type VNode } from '../../ui.ts'
import { RunnerSelect } from './capabilities.ts'
import { Section } from './section.ts'
import { type Draft, otherDrafts, type Runner, TEMPLATES, withTemplate } from './tools.ts'

type Props = {
  drafts: Draft[]
  /** Tools of the chosen capabilities. */
  available: ToolDefinition[]
  onChange(drafts: Draft[]): void
}

/** Tools that a program or a person executes, and tools that no chosen capability has. */
export function ClientTools({ drafts, available, onChange }: Props): VNode {
  const add = useRef<HTMLDivElement>(null)
  const change = (draft: Draft, changes: Partial<Draft>) =>
    onChange(drafts.map((other) => (other === draft ? { ...other, ...changes } : other)))
  const remove = (draft: Draft) => {
    onChange(drafts.filter((other) => other !== draft))
    add.current?.querySelector('button')?.focus()
  }
  const ofClient = drafts.filter(
    ({ runner, name }) => runner === 'client' && !available.some((tool) => tool.name === name),
  )
  const others = otherDrafts(drafts, available).filter(({ given }) => given !== undefined)
  return html`<${Section} title="Client-side tools" count=${ofClient.length} isOpen=${ofClient.length > 0}
      about="A client-side tool runs in your own program. The turn waits until the program sends the result of the call.">
      ${ofClient.map(
        (draft, index) =>
          html`<${ClientTool} key=${drafts.indexOf(draft)} number=${index + 1} draft=${draft} onChange=${(changes: Partial<Draft>) => change(draft, changes)} onRemove=${() => remove(draft)} />`,
      )}
      <div class="actions" ref=${add}>${TEMPLATES.map(
        ({ label, draft }) =>
          html`<button type="button" key=${label} onClick=${() => onChange(withTemplate(drafts, draft))}><${Icon} name="plus" />${label}</button>`,
      )}</div>
    <//>
    ${
      others.length > 0 &&
      html`<${Section} title="Other tools" count=${others.length} isOpen=${true} about="Tools that none of the chosen capabilities is known to have.">
        ${others.map(
          (
            draft,
          ) => html`<div class="tool-line" key=${draft.name}><code>${draft.name}</code><span class="quiet one-line" dir="auto">${draft.description}</span>
            <${RunnerSelect} name=${draft.name} runner=${draft.runner} onChange=${(event: Event) => change(draft, { runner: (event.target as HTMLSelectElement).value as Runner })} />
            <button type="button" class="ghost" aria-label=${`Remove ${draft.name}`} onClick=${() => remove(draft)}><${Icon} name="trash" /></button></div>`,
        )}
      <//>`
    }`
}

type ToolProps = { draft: Draft; number: number; onChange(changes: Partial<Draft>): void; onRemove(): void }

const enteredIn = (event: Event) => (event.target as HTMLInputElement).value

function ClientTool({ draft, number, onChange, onRemove }: ToolProps): VNode {
  const { name, description, parameters } = draft
  return html`<fieldset class="field raised"><legend>Client tool ${number}</legend>
    <label>Name <input value=${name} required pattern="[a-zA-Z0-9_\\-]{1,64}" title="1 to 64 letters, digits, _ or -" autocomplete="off"
      onInput=${(event: Event) => onChange({ name: enteredIn(event) })} /></label>
    <label>Description, for the model <textarea rows="2" dir="auto" value=${description}
      onInput=${(event: Event) => onChange({ description: enteredIn(event) })}></textarea></label>
    <label>Parameters, as a JSON schema <textarea class="code" rows="8" spellcheck="false" value=${parameters}
      onInput=${(event: Event) => onChange({ parameters: enteredIn(event) })}></textarea></label>
    <div><button type="button" class="danger" onClick=${onRemove}>Remove the tool</button></div>
  </fieldset>`
}
