import type { AgentSummary, LlmModelWithProvider } from 'agent-session-client'
import { readPages, useLoad } from '../../load.ts'
import { Icon } from '../../parts/icon.ts'
import { Menu } from '../../parts/menu.ts'
import { Page, Problem } from '../../parts/page.ts'
import { SearchBox } from '../../parts/search-box.ts'
import { type Column, Table } from '../../parts/table.ts'
import { Time } from '../../parts/time.ts'
import { go, link, route } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useState, type VNode } from '../../ui.ts'
import { agentItems } from './agent-menu.ts'
import { isSimulated, SimulatedNote, Welcome } from './welcome.ts'

const PAGE = 50

/** Columns of the list. */
const columnsFor = (models: LlmModelWithProvider[]): Column<AgentSummary>[] => [
  {
    title: 'Name',
    cell: ({ id, name }) => html`<a class="one-line" href=${link('agents', id)} title=${name}>${name}</a>`,
  },
  {
    title: 'Description',
    isMinor: true,
    cell: ({ description }) =>
      description && html`<span class="one-line" dir="auto" title=${description}>${description}</span>`,
  },
  {
    title: 'Model',
    isMinor: true,
    cell: ({ default_model_id: model }) =>
      model
        ? html`<span class="one-line" dir="auto">${models.find(({ id }) => id === model)?.display_name ?? 'gone'}</span>`
        : html`<span class="quiet">default</span>`,
  },
  {
    title: 'Tags',
    isMinor: true,
    cell: ({ tags }) => html`<span class="one-line" dir="auto">${tags.join(', ')}</span>`,
  },
  { title: 'Changed', cell: ({ updated_at }) => html`<${Time} at=${updated_at} />` },
]

/** Active or archived agents, all or matching a search, page by page. */
export function AgentList(): VNode {
  const search = route.value.query.get('search') ?? ''
  const isArchive = route.value.query.get('status') === 'archived'
  const [count, setCount] = useState(PAGE)
  const { value, error, reload } = useLoad(() => readList(search, isArchive, count), [search, isArchive, count])
  const { agents, models = [], hasArchived = false } = value ?? {}
  const isEmpty = agents?.length === 0 && search === ''
  const actions = html`<${Import} /><a class="button primary" href=${link('agents', 'new')}><${Icon} name="plus" />New agent</a>`
  const back = isArchive ? { title: 'Agents', href: link('agents') } : undefined
  const menu = (agent: AgentSummary) =>
    html`<${Menu} label=${`Actions for ${agent.name}`} items=${agentItems(agent, { reload })} />`
  return html`<${Page} title=${isArchive ? 'Archived agents' : 'Agents'} back=${back} actions=${actions}>
    ${!(isEmpty && !isArchive) && html`<${Search} text=${search} isArchive=${isArchive} />`}
    <${Problem} error=${error} />
    ${isSimulated(models) && html`<${SimulatedNote} />`}
    ${
      isEmpty && !isArchive
        ? html`<${Welcome} models=${models} />`
        : html`<${Table} items=${agents?.slice(0, count)} keyOf=${({ id }: AgentSummary) => id} columns=${columnsFor(models)}
          actions=${menu} none=${search === '' ? 'No archived agents.' : 'No agent matches.'} />`
    }
    ${(agents?.length ?? 0) > count && html`<button type="button" onClick=${() => setCount(count + PAGE)}>Show more</button>`}
    ${!isArchive && hasArchived && html`<p><a href=${placeOf({ status: 'archived' })}>Archived agents</a></p>`}
  <//>`
}

/** Reads one agent more than is shown, to know whether there are more. */
async function readList(search: string, isArchive: boolean, count: number) {
  const status = isArchive ? ('archived' as const) : ('active' as const)
  const query = { status, ...(search !== '' && { search }) }
  const [agents, models, archived] = await Promise.all([
    readPages((part) => api.agents.listAgentSummaries({ ...query, ...part }), count + 1),
    api.models.list(),
    api.agents.listAgentSummaries({ status: 'archived', limit: 1 }),
  ])
  return { agents, models: models.data, hasArchived: archived.data.length > 0 }
}

const placeOf = (query: Record<string, string>): string => `${link('agents')}?${new URLSearchParams(query)}`

/** Searches the names and descriptions of agents. */
function Search({ text, isArchive }: { text: string; isArchive: boolean }): VNode {
  const search = (wanted: string) =>
    go(placeOf({ ...(wanted !== '' && { search: wanted }), ...(isArchive && { status: 'archived' }) }), {
      replace: true,
    })
  return html`<${SearchBox} text=${text} label="Search agents" onSearch=${search} />`
}

/** Imports an agent from Markdown with YAML front matter, JSON or YAML. */
function Import(): VNode {
  const [error, setError] = useState<unknown>(undefined)
  const read = async (event: Event) => {
    const input = event.target as HTMLInputElement
    const [file] = input.files ?? []
    if (file === undefined) return
    try {
      const body = await file.text()
      const { id } = await api.agents.import({ body })
      go(link('agents', id))
    } catch (problem) {
      setError(problem)
    }
    input.value = ''
  }
  return html`<label class="button file"><${Icon} name="upload" />Import a file
    <input class="unseen" type="file" accept=".md,.markdown,.json,.yaml,.yml,.txt" onChange=${read} /></label>
    <${Problem} error=${error} />`
}
