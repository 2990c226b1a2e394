import type { AgentPreviewResponse, CreateAgentRequest } from 'agent-session-client'
import { askText, Dialog } from '../../parts/dialog.ts'
import { isAbout } from '../../parts/form.ts'
import { ActionButton } from '../../parts/page.ts'
import { api, sentenceOf } from '../../service.ts'
import { html, useState, type VNode } from '../../ui.ts'
import { Preview } from './preview.ts'

type Props = {
  action: string
  isBusy: boolean
  isChanged: boolean
  hasNotes: boolean
  error?: unknown
  done?: string
  read(): CreateAgentRequest
  onNote(note: string): void
  onDiscard(): void
}

/** Fields that show the service's sentence about them. */
const FIELDS = ['name', 'system_prompt', 'default_model_id', 'description', 'tags']

/** Bar at the end of the settings, which stays in view: it saves, discards and says what has been saved. */
export function Bar({ action, isBusy, isChanged, hasNotes, error, done = '', read, onNote, onDiscard }: Props): VNode {
  const [preview, setPreview] = useState<AgentPreviewResponse | undefined>(undefined)
  const show = async () => {
    const { system_prompt, capabilities, tools } = read()
    setPreview(await api.agents.preview({ system_prompt, capabilities, tools }))
  }
  const saveWithNote = async () => {
    const note = await askText({ title: 'Save with a note', label: 'Why this change?', action: 'Save' })
    if (note !== undefined) onNote(note)
  }
  const isElsewhere = error !== undefined && !FIELDS.some((name) => isAbout(error, { name }))
  return html`<div class="editor-bar">
    ${isElsewhere && html`<p class="problem" role="alert">${sentenceOf(error)}</p>`}
    <div class="actions">
      <button class="primary" aria-disabled=${isBusy}>${action}</button>
      ${hasNotes && html`<button type="button" aria-disabled=${isBusy || !isChanged} onClick=${() => isChanged && saveWithNote()}>Save with a note</button>`}
      ${isChanged && html`<button type="button" onClick=${onDiscard}>Discard</button>`}
      <${ActionButton} run=${show}>Preview<//>
      <span class="quiet" role="status">${isChanged ? 'Unsaved changes' : done}</span>
    </div>
    ${preview && html`<${Dialog} title="What the model gets" className="broad" onClose=${() => setPreview(undefined)}><${Preview} preview=${preview} /><//>`}
  </div>`
}
