import type { Agent } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { Page, Problem, Time } from '../../parts/page.ts'
import { type Column, Table } from '../../parts/table.ts'
import { go, link, route } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useState, type VNode } from '../../ui.ts'
import { StartButton } from './start-button.ts'
import { isSimulated, SimulatedNote, Welcome } from './welcome.ts'

/** Rows that are drawn at first. */
const SHOWN = 100

const COLUMNS: Column<Agent>[] = [
  { title: 'Name', cell: ({ id, name }) => html`<a href=${link('agents', id)}>${name}</a>` },
  { title: 'Description', cell: ({ description }) => html`<span dir="auto">${description}</span>` },
  { title: 'Tags', cell: ({ tags }) => html`<span dir="auto">${tags.join(', ')}</span>` },
  { title: 'Changed', cell: ({ updated_at }) => html`<${Time} at=${updated_at} />` },
]

/** Agents that are not archived, all or those that are searched for. */
export function AgentList(): VNode {
  const search = route.value.query.get('search') ?? ''
  const [count, setCount] = useState(SHOWN)
  const { value, error } = useLoad(async () => {
    const query = search === '' ? {} : { search }
    const [found, models] = await Promise.all([api.listAgents({ query }), api.listModels()])
    return { agents: found.data, models: models.data }
  }, [search])
  const { agents, models = [] } = value ?? {}
  const actions = html`<${Import} /><a class="button primary" href=${link('agents', 'new')}>New agent</a>`
  return html`<${Page} title="Agents" actions=${actions}>
    <${Search} text=${search} />
    <${Problem} error=${error} />
    ${isSimulated(models) && html`<${SimulatedNote} />`}
    ${agents?.length === 0 && search === '' && html`<${Welcome} models=${models} />`}
    ${
      (agents?.length !== 0 || search !== '') &&
      html`<${Table} items=${agents?.slice(0, count)} keyOf=${({ id }: Agent) => id} columns=${COLUMNS}
        actions=${({ id }: Agent) => html`<${StartButton} agentId=${id} />`} none="No agent has that in its name or description." />`
    }
    ${(agents?.length ?? 0) > count && html`<button type="button" onClick=${() => setCount(count + SHOWN)}>Show more</button>`}
  <//>`
}

function Search({ text }: { text: string }): VNode {
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const search = String(new FormData(event.target as HTMLFormElement).get('search')).trim()
    go(search === '' ? link('agents') : `${link('agents')}?${new URLSearchParams({ search })}`)
  }
  return html`<form role="search" class="search" onSubmit=${submit}>
    <label class="unseen" for="search">Search agents</label>
    <input id="search" name="search" type="search" key=${text} defaultValue=${text} placeholder="Search" autocomplete="off" />
  </form>`
}

/** Makes an agent of a Markdown file with YAML front matter, or of JSON or YAML. */
function Import(): VNode {
  const [error, setError] = useState<unknown>(undefined)
  const read = async (event: Event) => {
    const input = event.target as HTMLInputElement
    const [file] = input.files ?? []
    if (file === undefined) return
    try {
      const body = await file.text()
      const headers = { 'Content-Type': 'text/markdown' }
      const { id } = await api.importAgent({ body, bodySerializer: null, headers })
      go(link('agents', id))
    } catch (problem) {
      setError(problem)
    }
    input.value = ''
  }
  return html`<label class="button file">Import a file
    <input class="unseen" type="file" accept=".md,.markdown,.json,.yaml,.yml,.txt" onChange=${read} /></label>
    <${Problem} error=${error} />`
}
