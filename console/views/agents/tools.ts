import type { ToolDefinition } from 'agent-session-client'
import { html, useRef, type VNode } from '../../ui.ts'

type Runner = 'client' | 'approval' | 'service'

/** State of a tool in the form. */
export type Draft = {
  runner: Runner
  name: string
  description: string
  /** JSON schema of its arguments. */
  parameters: string
  /** The tool before the edit. */
  given: ToolDefinition | undefined
}

/** Example of a client tool. */
const NEW: Draft = {
  runner: 'client',
  name: '',
  description: '',
  parameters: JSON.stringify({ type: 'object', properties: { question: { type: 'string' } } }, null, 2),
  given: undefined,
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
    if (given?.type === 'temporal') return { ...given, policy: runner === 'approval' ? 'requires_approval' : 'auto' }
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

type Props = {
  drafts: Draft[]
  /** Tools of the chosen capabilities. */
  available: ToolDefinition[]
  onChange(drafts: Draft[]): void
}

/** Tools of the client, and tools of capabilities that need approval. */
export function Tools({ drafts, available, onChange }: Props): VNode {
  const change = (at: number, changes: Partial<Draft>) =>
    onChange(drafts.map((draft, index) => (index === at ? { ...draft, ...changes } : draft)))
  /** Changes the list of tools, which the surrounding form does not notice. */
  const changeList = (event: Event, changed: Draft[]) => {
    event.target?.dispatchEvent(new Event('input', { bubbles: true }))
    onChange(changed)
  }
  const add = useRef<HTMLButtonElement>(null)
  const isListed = (tool: ToolDefinition) => drafts.some(({ name }) => name === tool.name)
  const unlisted = available.filter((tool) => !isListed(tool))
  const guard = (tool: ToolDefinition): Draft => ({ ...NEW, runner: 'approval', name: tool.name, parameters: '{}' })
  return html`<fieldset class="field"><legend>Tools</legend>
    <small>Client tools, which your program or a person executes, and tools of capabilities that need approval.</small>
    ${available.length === 0 && html`<small>Choose a capability with tools to require approval for them.</small>`}
    ${drafts.map((draft, index) => {
      const props = {
        draft,
        onChange: (changes: Partial<Draft>) => change(index, changes),
        onRemove: (event: Event) => {
          const others = drafts.filter((_, other) => other !== index)
          changeList(event, others)
          add.current?.focus()
        },
      }
      return draft.runner === 'client'
        ? html`<${ClientTool} key=${index} number=${index + 1} ...${props} />`
        : html`<${ServiceTool} key=${index} ...${props} others=${unlisted} onTool=${(tool: ToolDefinition) => change(index, guard(tool))}
            isKnown=${draft.given?.type === 'temporal' || available.some(({ name }) => name === draft.name)} />`
    })}
    <div class="actions">
      <button type="button" ref=${add} onClick=${(event: Event) => changeList(event, [...drafts, NEW])}>Add a client tool</button>
      <button type="button" aria-disabled=${unlisted.length === 0}
        onClick=${(event: Event) => unlisted[0] && changeList(event, [...drafts, guard(unlisted[0])])}>Require approval for a tool</button>
    </div>
  </fieldset>`
}

type ToolProps = { draft: Draft; onChange(changes: Partial<Draft>): void; onRemove(event: Event): void }

const enteredIn = (event: Event) => (event.target as HTMLInputElement).value

function ClientTool({ draft, number, onChange, onRemove }: ToolProps & { number: number }): VNode {
  const { name, description, parameters } = draft
  return html`<fieldset class="field raised"><legend>Client tool ${number}</legend>
    <label>Name: 1 to 64 letters, digits, _ or - <input value=${name} required pattern="[a-zA-Z0-9_\\-]{1,64}" title="1 to 64 letters, digits, _ or -" autocomplete="off"
      onInput=${(event: Event) => onChange({ name: enteredIn(event) })} /></label>
    <label>Description, for the model <textarea rows="2" dir="auto" value=${description}
      onInput=${(event: Event) => onChange({ description: enteredIn(event) })}></textarea></label>
    <label>Parameters, as a JSON schema <textarea class="code" rows="8" spellcheck="false" value=${parameters}
      onInput=${(event: Event) => onChange({ parameters: enteredIn(event) })}></textarea></label>
    <div><button type="button" class="danger" onClick=${onRemove}>Remove the tool</button></div>
  </fieldset>`
}

type ServiceToolProps = ToolProps & { others: ToolDefinition[]; isKnown: boolean; onTool(tool: ToolDefinition): void }

/** Tool of a capability, chosen from the agent's tools. */
function ServiceTool({ draft, others, isKnown, onChange, onTool, onRemove }: ServiceToolProps): VNode {
  const { name, runner } = draft
  const choose = (event: Event) => {
    const tool = others.find((other) => other.name === enteredIn(event))
    if (tool !== undefined) onTool(tool)
  }
  return html`<fieldset class="field raised"><legend>Tool that needs approval</legend>
    <label>Tool <select onChange=${choose}><option selected>${name}</option>
      ${others.map((tool) => html`<option key=${tool.name}>${tool.name}</option>`)}</select></label>
    ${!isKnown && html`<p class="problem">No capability that is chosen has a tool of this name. It is refused, unless an MCP server may have it.</p>`}
    <label>Calls <select onChange=${(event: Event) => onChange({ runner: enteredIn(event) as Runner })}>
      <option value="approval" selected=${runner === 'approval'}>need approval</option>
      <option value="service" selected=${runner === 'service'}>run at once</option></select></label>
    <div><button type="button" class="danger" onClick=${onRemove}>Remove</button></div>
  </fieldset>`
}
