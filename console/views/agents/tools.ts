import type { ToolDefinition } from 'agent-session-client'
import { html, type VNode } from '../../ui.ts'

type Runner = 'client' | 'approval' | 'service'

/** A tool as it is edited. */
export type Draft = {
  runner: Runner
  name: string
  description: string
  /** JSON schema of its arguments. */
  parameters: string
  /** What it was before. */
  given: ToolDefinition | undefined
}

const NEW: Draft = {
  runner: 'client',
  name: '',
  description: '',
  parameters: JSON.stringify({ type: 'object', properties: { question: { type: 'string' } } }, null, 2),
  given: undefined,
}

const RUNNERS: Record<Runner, string> = {
  client: 'the client, which sends the result',
  approval: 'the service, after approval',
  service: 'the service',
}

export const draftsOf = (tools: ToolDefinition[]): Draft[] => tools.map(draftOf)

const draftOf = (given: ToolDefinition): Draft => ({
  runner: runnerOf(given),
  name: given.name,
  description: given.description,
  parameters: JSON.stringify(given.parameters, null, 2),
  given,
})

function runnerOf(tool: ToolDefinition): Runner {
  if (tool.type === 'client_side' || tool.policy === 'client_side') return 'client'
  return tool.policy === 'requires_approval' ? 'approval' : 'service'
}

export const toolsOf = (drafts: Draft[]): ToolDefinition[] =>
  drafts.map((draft) => {
    const { runner, name, description, parameters, given } = draft
    if (given !== undefined && JSON.stringify(draftOf(given)) === JSON.stringify(draft)) return given
    const fields = { name, description, parameters: read(name, parameters) }
    const display = given?.display_name ? { display_name: given.display_name } : {}
    if (given?.type === 'client_side' && runner === 'client') return { ...given, ...fields }
    if (runner === 'client' && given === undefined) return { type: 'client_side', ...fields }
    const policy = { client: 'client_side', approval: 'requires_approval', service: 'auto' } as const
    return { type: 'builtin', ...fields, ...display, policy: policy[runner] }
  })

function read(name: string, text: string): Record<string, unknown> {
  try {
    return JSON.parse(text.trim() === '' ? '{}' : text)
  } catch (error) {
    throw new Error(`The parameters of ${name} are not valid JSON: ${(error as Error).message}`)
  }
}

/** Tools that the client runs, and those of capabilities that wait for an approval. */
export function Tools({ drafts, onChange }: { drafts: Draft[]; onChange(drafts: Draft[]): void }): VNode {
  const change = (at: number, changes: Partial<Draft>) =>
    onChange(drafts.map((draft, index) => (index === at ? { ...draft, ...changes } : draft)))
  return html`<fieldset class="field"><legend>Tools</legend>
    <small>Client tools, which your program or a person executes, and tools of capabilities that need approval.</small>
    ${drafts.map(
      (draft, index) => html`<${Tool} key=${index} draft=${draft} number=${index + 1}
        onChange=${(changes: Partial<Draft>) => change(index, changes)}
        onRemove=${() => onChange(drafts.filter((_, other) => other !== index))} />`,
    )}
    <div><button type="button" onClick=${() => onChange([...drafts, NEW])}>Add a tool</button></div>
  </fieldset>`
}

type ToolProps = { draft: Draft; number: number; onChange(changes: Partial<Draft>): void; onRemove(): void }

function Tool({ draft, number, onChange, onRemove }: ToolProps): VNode {
  const { runner, name, description, parameters } = draft
  const enteredIn = (event: Event) => (event.target as HTMLInputElement).value
  const isClient = runner === 'client'
  return html`<fieldset class="field raised"><legend>Tool ${number}</legend>
    <label>Name <input value=${name} required pattern="[a-zA-Z0-9_\\-]{1,64}" title="1 to 64 letters, digits, _ or -" autocomplete="off"
      onInput=${(event: Event) => onChange({ name: enteredIn(event) })} /></label>
    <label>Executed by <select onChange=${(event: Event) => onChange({ runner: enteredIn(event) as Runner })}>${Object.entries(
      RUNNERS,
    ).map(
      ([value, label]) => html`<option value=${value} selected=${value === runner}>${label}</option>`,
    )}</select></label>
    <label>Description <textarea rows="2" dir="auto" value=${description}
      onInput=${(event: Event) => onChange({ description: enteredIn(event) })}></textarea></label>
    ${
      isClient &&
      html`<label>Parameters, as a JSON schema <textarea class="code" rows="5" spellcheck="false" value=${parameters}
        onInput=${(event: Event) => onChange({ parameters: enteredIn(event) })}></textarea></label>`
    }
    <div><button type="button" class="danger" onClick=${onRemove}>Remove the tool</button></div>
  </fieldset>`
}
