import type { AgentCapabilityConfig, CapabilityInfo, ToolDefinition } from 'agent-session-client'
import { useAgents } from '../../parts/agent-select.ts'
import { html, useState, type VNode } from '../../ui.ts'
import { Section } from './section.ts'
import { chosenRunner, type Draft, type Runner, withRunner } from './tools.ts'

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

type Props = {
  all: CapabilityInfo[]
  chosen: Chosen
  drafts: Draft[]
  onChange(changes: { chosen?: Chosen; drafts?: Draft[] }): void
}

const isTest = ({ category }: CapabilityInfo): boolean => category === 'testing'

type Kind = { title: string; terms?: string; about: string; has(capability: CapabilityInfo): boolean }
const KINDS: Kind[] = [
  {
    title: 'Capabilities',
    terms: 'capabilities and tools',
    about:
      'A capability is tools that belong together, with what they need: instructions for the model, files, a database. A tool is something that the model may call, such as reading a file. A call runs at once, or asks a person first.',
    has: ({ is_mcp, is_skill }) => !is_mcp && !is_skill,
  },
  {
    title: 'Skills',
    about:
      'A skill is instructions and files for one kind of task. Only its name and description are in the prompt; the model reads the rest once it needs it.',
    has: ({ is_skill }) => is_skill,
  },
  {
    title: 'MCP servers',
    terms: 'MCP servers',
    about: 'An MCP server is a program elsewhere whose tools agents may call, over the Model Context Protocol.',
    has: ({ is_mcp }) => is_mcp,
  },
]

/** Choice of an agent's capabilities: built-in ones, skills and MCP servers, and who runs the tools of each. */
export function Capabilities({ all, chosen, drafts, onChange }: Props): VNode {
  const [showsTests, setShowsTests] = useState(false)
  const names = new Map(all.map(({ id, name }) => [id, name]))
  const gone = [...chosen.keys()].filter((ref) => !names.has(ref))
  const included = withRequired(all, chosen)
  const available = all.filter(
    (capability) =>
      chosen.has(capability.id) ||
      included.has(capability.id) ||
      (capability.status === 'available' && (showsTests || !isTest(capability))),
  )
  const switchTests = (event: Event) => setShowsTests((event.target as HTMLInputElement).checked)
  return html`${KINDS.map(({ title, terms, about, has }) => {
    const some = available.filter(has)
    const count = some.filter(({ id }) => chosen.has(id)).length
    const hasTests = all.some((capability) => has(capability) && isTest(capability))
    return (
      some.length > 0 &&
      html`<${Section} key=${title} title=${title} terms=${terms} count=${count} about=${about} isOpen=${title === 'Capabilities' || count > 0}>
        <div class="choices">${some.map(
          (capability) =>
            html`<${Choice} key=${capability.id} capability=${capability} names=${names} chosen=${chosen} drafts=${drafts} onChange=${onChange}
              isIncluded=${included.has(capability.id) && !chosen.has(capability.id)} />`,
        )}</div>
        ${hasTests && html`<label class="check quiet"><input type="checkbox" checked=${showsTests} onChange=${switchTests} />Show test capabilities</label>`}
      <//>`
    )
  })}
  ${gone.length > 0 && html`<${Others} refs=${gone} chosen=${chosen} onChange=${onChange} />`}`
}

const without = (chosen: Chosen, ref: string): Chosen => new Map([...chosen].filter(([key]) => key !== ref))

const AGENT = 'agent:'
const agentIdOf = (ref: string): string | undefined =>
  ref.startsWith(AGENT) ? `agent_${ref.slice(AGENT.length).replaceAll('-', '')}` : undefined

/** Chosen capabilities that are in no list: other agents, and capabilities that are no longer available. */
function Others({ refs, chosen, onChange }: { refs: string[] } & Pick<Props, 'chosen' | 'onChange'>): VNode {
  const agents = useAgents(refs.map(agentIdOf))
  return html`<${Section} title="Other capabilities" count=${refs.length} isOpen=${true}
    about="Other agents that this one may ask, and capabilities that are no longer available.">
    <div class="choices">${refs.map((ref) => {
      const agent = agents.get(agentIdOf(ref) ?? '')
      return html`<label class="check" key=${ref}><input type="checkbox" checked onChange=${() => onChange({ chosen: without(chosen, ref) })} />
        ${agent ? html`<span dir="auto">Ask ${agent.name}</span>` : html`<code>${ref}</code>`}</label>`
    })}</div><//>`
}

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

function Choice({ capability, names, chosen, drafts, onChange, isIncluded }: ChoiceProps): VNode {
  const { id, name, description, tool_definitions, dependencies, features } = capability
  const config = chosen.get(id)
  const isChosen = config !== undefined
  const toggle = () => onChange({ chosen: isChosen ? without(chosen, id) : new Map(chosen).set(id, '') })
  const given = features.map((feature) => FEATURES[feature] ?? feature).join(', ')
  const more = [
    given !== '' && `Adds to the session: ${given}.`,
    dependencies.length > 0 && `Requires ${dependencies.map((ref) => names.get(ref) ?? ref).join(', ')}.`,
  ].filter(Boolean)
  return html`<div class="choice">
    <div class="choice-line">
      <label class="check"><input type="checkbox" checked=${isChosen} onChange=${toggle} aria-describedby=${`about-${id}`} /><span dir="auto">${name}</span></label>
      ${isIncluded && html`<mark>included</mark>`}
      <span class=${isChosen ? 'quiet' : 'quiet one-line'} id=${`about-${id}`} dir="auto" title=${isChosen ? undefined : description}>${description}</span>
    </div>
    ${
      (isChosen || isIncluded) &&
      html`<div class="choice-more">
        ${more.length > 0 && html`<small>${more.join(' ')}</small>`}
        ${tool_definitions.map((tool) => html`<${ToolChoice} key=${tool.name} tool=${tool} drafts=${drafts} onChange=${onChange} />`)}
        ${
          isChosen &&
          html`<details open=${config !== ''}><summary>Configuration</summary>
            <textarea class="code" rows="3" spellcheck="false" aria-label=${`Configuration of ${name}, as JSON`} value=${config}
              onInput=${(event: Event) => onChange({ chosen: new Map(chosen).set(id, (event.target as HTMLTextAreaElement).value) })}></textarea>
          </details>`
        }</div>`
    }
  </div>`
}

type ToolProps = { tool: ToolDefinition } & Pick<Props, 'drafts' | 'onChange'>

/** Tool of a chosen capability, and who runs it. */
function ToolChoice({ tool, drafts, onChange }: ToolProps): VNode {
  const runner = chosenRunner(drafts, tool)
  const choose = (event: Event) =>
    onChange({ drafts: withRunner(drafts, tool, (event.target as HTMLSelectElement).value as Runner) })
  return html`<div class="tool-line"><code>${tool.name}</code><span class="quiet one-line" dir="auto" title=${tool.description}>${tool.description}</span>
    <${RunnerSelect} name=${tool.name} runner=${runner} onChange=${choose} /></div>`
}

type RunnerProps = { name: string; runner: Runner; onChange(event: Event): void }

/** Choice of who runs a tool. Only programs can make a client run the tool of a capability. */
export const RunnerSelect = ({
  name,
  runner,
  onChange,
}: RunnerProps): VNode => html`<select aria-label=${`Calls of ${name}`} onChange=${onChange}>
  <option value="service" selected=${runner === 'service'}>Runs at once</option>
  <option value="approval" selected=${runner === 'approval'}>Asks first</option>
  ${runner === 'client' && html`<option value="client" selected>Runs in your program</option>`}
</select>`
