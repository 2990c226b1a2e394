import type { AgentCapabilityConfig, CapabilityInfo, ToolDefinition } from 'agent-session-client'
import { html, type VNode } from '../../ui.ts'

/** Chosen capabilities, with their configuration as JSON or '', in the order of choice. */
export type Chosen = Map<string, string>

export const chosenOf = (capabilities: AgentCapabilityConfig[]): Chosen =>
  new Map(
    capabilities.map(({ ref, config }) => [
      ref,
      config === undefined || config === null ? '' : JSON.stringify(config, null, 2),
    ]),
  )

export const configsOf = (chosen: Chosen): AgentCapabilityConfig[] =>
  [...chosen].map(([ref, text]) => (text.trim() === '' ? { ref } : { ref, config: read(ref, text) }))

function read(ref: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`The configuration of ${ref} is not valid JSON: ${(error as Error).message}`)
  }
}

/** Returns the chosen capabilities and the capabilities that they require. */
function withRequired(all: CapabilityInfo[], chosen: Chosen): Set<string> {
  const refs = new Set(chosen.keys())
  // Iterating over a set includes entries added meanwhile.
  for (const ref of refs) for (const needed of all.find(({ id }) => id === ref)?.dependencies ?? []) refs.add(needed)
  return refs
}

/** Returns the tools of the chosen capabilities and of the capabilities that they require. */
export function toolsOfChosen(all: CapabilityInfo[], chosen: Chosen): ToolDefinition[] {
  const refs = withRequired(all, chosen)
  return all.filter(({ id }) => refs.has(id)).flatMap(({ tool_definitions }) => tool_definitions)
}

type Props = { all: CapabilityInfo[]; chosen: Chosen; onChange(chosen: Chosen): void }

const GROUPS: { title: string; has(capability: CapabilityInfo): boolean }[] = [
  { title: 'Capabilities', has: ({ is_mcp, is_skill }) => !is_mcp && !is_skill },
  { title: 'Skills', has: ({ is_skill }) => is_skill },
  { title: 'MCP servers', has: ({ is_mcp }) => is_mcp },
]

/** Choice of an agent's capabilities: built-in ones, skills and MCP servers. */
export function Capabilities({ all, chosen, onChange }: Props): VNode {
  const names = new Map(all.map(({ id, name }) => [id, name]))
  const gone = [...chosen.keys()].filter((ref) => !names.has(ref))
  const included = withRequired(all, chosen)
  const available = all.filter(({ id, status }) => status === 'available' || chosen.has(id))
  return html`${GROUPS.map(({ title, has }) => {
    const some = available.filter(has)
    return (
      some.length > 0 &&
      html`<fieldset class="field" key=${title}><legend>${title}</legend>${some.map(
        (capability) =>
          html`<${Choice} key=${capability.id} capability=${capability} names=${names} chosen=${chosen} onChange=${onChange}
            isIncluded=${included.has(capability.id) && !chosen.has(capability.id)} />`,
      )}</fieldset>`
    )
  })}
  ${
    gone.length > 0 &&
    html`<fieldset class="field"><legend>No longer available</legend>${gone.map(
      (ref) => html`<label class="check" key=${ref}><input type="checkbox" checked
        onChange=${() => onChange(without(chosen, ref))} /><code>${ref}</code></label>`,
    )}</fieldset>`
  }`
}

const without = (chosen: Chosen, ref: string): Chosen => new Map([...chosen].filter(([key]) => key !== ref))

/** Parts of a session that come with a capability. */
const FEATURES: Record<CapabilityInfo['features'][number], string> = {
  file_system: 'files',
  secrets: 'secrets',
  key_value: 'values',
  schedules: 'schedules',
  sql_database: 'databases',
}

type ChoiceProps = Omit<Props, 'all'> & {
  capability: CapabilityInfo
  names: Map<string, string>
  /** Whether another capability requires it. */
  isIncluded: boolean
}

function Choice({ capability, names, chosen, onChange, isIncluded }: ChoiceProps): VNode {
  const { id, name, description, tool_definitions, dependencies, features } = capability
  const config = chosen.get(id)
  const toggle = () => onChange(config === undefined ? new Map(chosen).set(id, '') : without(chosen, id))
  const tools = tool_definitions.map((tool) => tool.name).join(', ')
  const given = features.map((feature) => FEATURES[feature] ?? feature).join(', ')
  return html`<div>
    <label class="check"><input type="checkbox" checked=${config !== undefined} onChange=${toggle} aria-describedby=${`about-${id}`} />
      <span dir="auto">${name}</span>${isIncluded && html`<mark>included</mark>`}</label>
    <div class="quiet indented" id=${`about-${id}`} dir="auto">${description}
      ${tools !== '' && html` Tools: <code>${tools}</code>.`}
      ${given !== '' && ` Session features: ${given}.`}
      ${dependencies.length > 0 && ` Requires ${dependencies.map((ref) => names.get(ref) ?? ref).join(', ')}.`}</div>
    ${
      config !== undefined &&
      html`<details class="indented" open=${config !== ''}><summary>Configuration</summary>
        <textarea class="code" rows="3" spellcheck="false" aria-label=${`Configuration of ${name}, as JSON`} value=${config}
          onInput=${(event: Event) => onChange(new Map(chosen).set(id, (event.target as HTMLTextAreaElement).value))}></textarea>
      </details>`
    }
  </div>`
}
