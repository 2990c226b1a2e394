import { useLoad } from '../../load.ts'
import { type AgentName, readAgentNames } from '../../parts/agent-names.ts'
import { type Field, Form, givenOf } from '../../parts/form.ts'
import { Page, Problem } from '../../parts/page.ts'
import { Skeleton } from '../../parts/skeleton.ts'
import { go, link, route } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useState, type VNode } from '../../ui.ts'
import { placeOf, shownFilter } from './session-list.ts'

/** Number of agents above which the choice has a search. */
const MANY = 20
/** Options of the choice that are drawn. */
const MAX_OPTIONS = 200
const NONE = 'No agent: the default model, without tools'

/** Form for a new session, at `#/sessions/new`; the address may name its agent. */
export function NewSession(): VNode {
  const { value, error } = useLoad(async () => {
    const [agents, models] = await Promise.all([readAgentNames(), api.models.list()])
    return { agents, models: models.data.filter(({ status }) => status === 'active') }
  }, [])
  const { agents = [], models = [] } = value ?? {}
  const [agentId, setAgentId] = useState(route.value.query.get('agent') ?? '')
  const create = async (values: Record<string, unknown>) => {
    const { id } = await api.sessions.create(givenOf({ ...values, agent_id: agentId }))
    go(link('sessions', id), { replace: true })
  }
  const fields: Field[] = [
    { name: 'title', label: 'Title', kind: 'text', hint: 'Without one, the first message is its title.' },
    {
      name: 'model_id',
      label: 'Model',
      kind: 'choice',
      none: 'The agent’s model',
      options: models.map(({ id, display_name, provider_name }) => ({
        value: id,
        label: `${display_name} (${provider_name})`,
      })),
    },
    {
      name: 'snapshots',
      label: 'Keep files and data as they were after each turn',
      kind: 'boolean',
      hint: 'A fork then begins with the files of its turn; otherwise with the files of now.',
    },
  ]
  return html`<${Page} title="New session" back=${{ title: 'Sessions', href: placeOf(shownFilter.value) }}>
    <${Problem} error=${error} />
    ${value === undefined && error === undefined && html`<${Skeleton} />`}
    ${
      value &&
      html`<div class="form new-session"><${AgentChoice} agents=${agents} value=${agentId} choose=${setAgentId} /></div>
        <${Form} fields=${fields} action="Start" onSubmit=${create} />`
    }
  <//>`
}

type ChoiceProps = { agents: AgentName[]; value: string; choose(id: string): void }

/** Choice of an agent: a menu, or a list that can be searched if there are many. */
function AgentChoice({ agents, value, choose }: ChoiceProps): VNode {
  const [text, setText] = useState('')
  const isMany = agents.length > MANY
  const words = text.trim().toLowerCase()
  const found = agents.filter(({ id, name }) => id === value || name.toLowerCase().includes(words))
  // An archived agent is not in the list, and the service says so.
  const unknown = value !== '' && !agents.some(({ id }) => id === value)
  const shown = [...(unknown ? [{ id: value, name: value }] : []), ...found.slice(0, MAX_OPTIONS)]
  return html`<div class="field">
    <label for="agent">Agent</label>
    ${isMany && html`<input type="search" aria-label="Search agents" placeholder="Search agents" autocomplete="off" dir="auto" value=${text} onInput=${(event: Event) => setText((event.target as HTMLInputElement).value)} />`}
    <select id="agent" size=${isMany ? 8 : undefined} onChange=${(event: Event) => choose((event.target as HTMLSelectElement).value)}>
      <option value="" selected=${value === ''}>${NONE}</option>
      ${shown.map(({ id, name }) => html`<option key=${id} value=${id} selected=${id === value}>${name}</option>`)}
    </select>
    ${found.length > MAX_OPTIONS && html`<small>The first ${MAX_OPTIONS} of ${found.length.toLocaleString()} are shown: search for others.</small>`}
  </div>`
}
