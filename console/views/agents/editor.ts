import type { Agent, CapabilityInfo, CreateAgentRequest, LlmModelWithProvider } from 'agent-session-client'
import { type ComponentChildren, html, useEffect, useRef, useState, type VNode } from '../../ui.ts'
import { useUnsaved } from '../../unsaved.ts'
import { Bar } from './bar.ts'
import { Basics } from './basics.ts'
import { Capabilities, toolsOfChosen } from './capabilities.ts'
import { ClientTools } from './client-tools.ts'
import { isSame, requestOf, type Settings, settingsOf } from './settings.ts'
import { TryIt } from './try-it.ts'

export type Catalogue = { models: LlmModelWithProvider[]; capabilities: CapabilityInfo[] }

type Props = Catalogue & {
  agent: Partial<Agent>
  action: string
  /** Saves the request, whose fields were `before`. Returns false if nothing was saved. */
  save(wanted: CreateAgentRequest, before: CreateAgentRequest, note: string | undefined): Promise<boolean>
  /** Whether a save may have a note. */
  hasNotes?: boolean
  /** Shown above the bar, such as a conflict. */
  children?: ComponentChildren
}

/** Agent in two panes: its settings, and a chat that runs them before they are saved. */
export function Editor({ agent, action, save, hasNotes = false, models, capabilities, children }: Props): VNode {
  const setUnsaved = useUnsaved()
  const [saved, setSaved] = useState<Settings>(() => settingsOf(agent))
  const [settings, setSettings] = useState(saved)
  const [pane, setPane] = useState<'settings' | 'try'>('settings')
  const [state, setState] = useState<{ isBusy: boolean; error?: unknown; done?: string }>({ isBusy: false })
  const isRunning = useRef(false)
  const form = useRef<HTMLFormElement>(null)
  const isChanged = !isSame(settings, saved)
  useEffect(() => setUnsaved(isChanged), [isChanged])
  // The entry may be far above the bar, out of view.
  useEffect(() => form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus(), [state.error])
  const change = (changes: Partial<Settings>) => {
    setSettings((before) => ({ ...before, ...changes }))
    if (state.done) setState({ isBusy: false })
  }
  const run = async (note?: string) => {
    if (isRunning.current || !form.current || !isValid(form.current)) return
    isRunning.current = true
    setState({ isBusy: true })
    try {
      const isDone = await save(requestOf(settings, capabilities), requestOf(saved, capabilities), note)
      // What was entered meanwhile is still unsaved.
      if (isDone) setSaved(settings)
      setState({ isBusy: false, done: isDone ? 'Saved.' : '' })
    } catch (error) {
      setState({ isBusy: false, error })
    }
    isRunning.current = false
  }
  const submit = (event: Event) => {
    event.preventDefault()
    void run()
  }
  const discard = () => {
    setSettings(saved)
    setState({ isBusy: false })
  }
  const available = toolsOfChosen(capabilities, settings.chosen)
  const panes = html`<div class="segments panes" role="group" aria-label="Show">
    <button type="button" aria-pressed=${pane === 'settings'} onClick=${() => setPane('settings')}>Settings</button>
    <button type="button" aria-pressed=${pane === 'try'} onClick=${() => setPane('try')}>Try it</button></div>`
  return html`${panes}<div class="editor" data-pane=${pane}>
    <form class="editor-settings" ref=${form} noValidate onSubmit=${submit}>
      <${Basics} settings=${settings} models=${models} error=${state.error} onChange=${change} />
      <${Capabilities} all=${capabilities} chosen=${settings.chosen} drafts=${settings.drafts} onChange=${change} />
      <${ClientTools} drafts=${settings.drafts} available=${available} onChange=${(drafts: Settings['drafts']) => change({ drafts })} />
      ${children}
      <${Bar} ...${state} action=${action} isChanged=${isChanged} hasNotes=${hasNotes} onNote=${(note: string) => run(note)} onDiscard=${discard}
        read=${() => requestOf(settings, capabilities)} />
    </form>
    <${TryIt} agent=${agent} models=${models} version=${textOf(settings, capabilities)} read=${() => requestOf(settings, capabilities)} />
  </div>`
}

/** Checks the form, and shows the first entry that is not valid, also in a closed part. */
function isValid(form: HTMLFormElement): boolean {
  const details = form.querySelector(':invalid')?.closest('details')
  if (details) details.open = true
  return form.reportValidity()
}

/** Text that changes with whatever a session would run. */
function textOf(settings: Settings, capabilities: CapabilityInfo[]): string {
  try {
    const { system_prompt, default_model_id, capabilities: refs, tools } = requestOf(settings, capabilities)
    return JSON.stringify([system_prompt, default_model_id, refs, tools])
  } catch {
    return ''
  }
}
