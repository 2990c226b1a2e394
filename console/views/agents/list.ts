import type { Agent } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { Page, Problem } from '../../parts/page.ts'
import { type Column, Table } from '../../parts/table.ts'
import { Time } from '../../parts/time.ts'
import { go, link, route } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useEffect, useRef, useState, type VNode } from '../../ui.ts'
import { StartButton } from './start-button.ts'
import { isSimulated, SimulatedNote, Welcome } from './welcome.ts'

/** Pause in typing that starts a search. */
const TYPING_MS = 250
/** Rows that are drawn at first. */
const SHOWN = 100

const COLUMNS: Column<Agent>[] = [
  { title: 'Name', cell: ({ id, name }) => html`<a href=${link('agents', id)}>${name}</a>` },
  { title: 'Description', cell: ({ description }) => html`<span class="clamp" dir="auto">${description}</span>` },
  { title: 'Tags', cell: ({ tags }) => html`<span dir="auto">${tags.join(', ')}</span>` },
  { title: 'Changed', cell: ({ updated_at }) => html`<${Time} at=${updated_at} />` },
]

/** Active or archived agents, all or matching a search. */
export function AgentList(): VNode {
  const search = route.value.query.get('search') ?? ''
  const isArchive = route.value.query.get('status') === 'archived'
  const [count, setCount] = useState(SHOWN)
  const { value, error } = useLoad(async () => {
    const query = { ...(search !== '' && { search }), ...(isArchive && { status: 'archived' as const }) }
    const [found, models] = await Promise.all([api.agents.list(query), api.models.list()])
    return { agents: found.data, models: models.data }
  }, [search, isArchive])
  const { agents, models = [] } = value ?? {}
  const isEmpty = agents?.length === 0 && search === ''
  const actions = html`<${Import} /><a class="button primary" href=${link('agents', 'new')}>New agent</a>`
  return html`<${Page} title=${isArchive ? 'Archived agents' : 'Agents'} actions=${actions}>
    <${Search} text=${search} isArchive=${isArchive} />
    <${Problem} error=${error} />
    ${isSimulated(models) && html`<${SimulatedNote} />`}
    ${isEmpty && !isArchive && html`<${Welcome} models=${models} />`}
    ${
      (!isEmpty || isArchive) &&
      html`<${Table} items=${agents?.slice(0, count)} keyOf=${({ id }: Agent) => id} columns=${COLUMNS}
        actions=${isArchive ? undefined : ({ id }: Agent) => html`<${StartButton} agentId=${id} />`}
        none=${search === '' ? 'No archived agents.' : 'No agent matches.'} />`
    }
    ${(agents?.length ?? 0) > count && html`<button type="button" onClick=${() => setCount(count + SHOWN)}>Show more</button>`}
    <p>${isArchive ? html`<a href=${link('agents')}>Active agents</a>` : html`<a href=${placeOf({ status: 'archived' })}>Archived agents</a>`}</p>
  <//>`
}

const placeOf = (query: Record<string, string>): string => `${link('agents')}?${new URLSearchParams(query)}`

/** Searches while the user types. */
function Search({ text, isArchive }: { text: string; isArchive: boolean }): VNode {
  const box = useRef<HTMLInputElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  useEffect(() => {
    // The address changed without typing.
    if (box.current && document.activeElement !== box.current) box.current.value = text
  }, [text])
  const search = () => {
    // The user may have left the list meanwhile.
    if (!box.current) return
    const wanted = box.current.value.trim()
    go(placeOf({ ...(wanted !== '' && { search: wanted }), ...(isArchive && { status: 'archived' }) }), {
      replace: true,
    })
  }
  const type = () => {
    clearTimeout(timer.current)
    timer.current = setTimeout(search, TYPING_MS)
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    search()
  }
  return html`<form role="search" class="search" onSubmit=${submit}>
    <label class="unseen" for="search">Search agents</label>
    <input id="search" ref=${box} type="search" defaultValue=${text} placeholder="Search" autocomplete="off" onInput=${type} />
  </form>`
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
  return html`<label class="button file">Import a file
    <input class="unseen" type="file" accept=".md,.markdown,.json,.yaml,.yml,.txt" onChange=${read} /></label>
    <${Problem} error=${error} />`
}
