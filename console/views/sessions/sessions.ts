import type { Agent, Session } from 'agent-session-client'
import { readPages, useEvery, useLoad } from '../../load.ts'
import { Form } from '../../parts/form.ts'
import { Lazy } from '../../parts/lazy.ts'
import { ActionButton, Page, Problem } from '../../parts/page.ts'
import { type Column, Table } from '../../parts/table.ts'
import { Time } from '../../parts/time.ts'
import { go, link, route } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useMemo, useState, type VNode } from '../../ui.ts'
import { titleOf } from '../session/title.ts'

const PAGE = 50
/** Interval between polls of the list. */
const LOOK_MS = 5000

const STATUS: Record<Session['status'], string> = {
  started: 'new',
  active: 'working',
  idle: 'idle',
  waitingfortoolresults: 'waiting for you',
}

const loadSession = () => import('../session/session.ts')

/** Sessions at `#/sessions`, one at `#/sessions/<id>`, a form at `#/sessions/new`. */
export function View(): VNode {
  const id = route.value.path[1]
  if (id === 'new') return html`<${NewSession} />`
  if (id !== undefined) return html`<${Lazy} key=${id} title="Session" load=${loadSession} sessionId=${id} />`
  return html`<${List} agentId=${route.value.query.get('agent') ?? undefined} />`
}

function List({ agentId }: { agentId: string | undefined }): VNode {
  const [count, setCount] = useState(PAGE)
  const {
    value: sessions,
    error,
    reload,
    refresh,
  } = useLoad(() => readPages((query) => api.sessions.list({ agent_id: agentId, ...query }), count), [agentId, count])
  useEvery(LOOK_MS, refresh)
  const { value: agents = [] } = useLoad(async () => (await api.agents.list()).data, [])
  const names = useMemo(() => new Map(agents.map(({ id, name }) => [id, name])), [agents])
  const at = ({ id }: Session) => ({ session_id: id })
  const done = (work: Promise<unknown>) => work.then(reload)
  const columns: Column<Session>[] = [
    { title: 'Session', cell: (session) => html`<a href=${link('sessions', session.id)}>${titleOf(session)}</a>` },
    {
      title: 'Agent',
      cell: ({ agent_id }) =>
        agent_id && html`<span dir="auto">${names.get(agent_id) ?? (agents.length > 0 ? 'archived' : '')}</span>`,
    },
    { title: 'Status', cell: ({ status }) => STATUS[status] ?? status },
    { title: 'Changed', cell: ({ updated_at }) => html`<${Time} at=${updated_at} />` },
  ]
  const actions = (session: Session) => html`
    <${ActionButton} run=${() => done(session.is_pinned ? api.sessions.unpin(at(session)) : api.sessions.pin(at(session)))}>
      ${session.is_pinned ? 'Unpin' : 'Pin'}<//>
    <${ActionButton} className="danger" confirm="Delete" question=${`Delete “${titleOf(session)}” and everything in it?`}
      run=${() => done(api.sessions.delete(at(session)))}>Delete<//>`
  const create = html`<a class="button primary" href=${link('sessions', 'new')}>New session</a>`
  return html`<${Page} title="Sessions" actions=${create}>
    ${(agents.length > 0 || agentId) && html`<${AgentFilter} agents=${agents} agentId=${agentId} />`}
    <${Problem} error=${error} />
    <${Table} items=${sessions} keyOf=${({ id }: Session) => id} columns=${columns} actions=${actions} none="None yet." />
    ${sessions?.length === count && html`<button type="button" onClick=${() => setCount(count + PAGE)}>Show more</button>`}
  <//>`
}

function AgentFilter({ agents, agentId }: { agents: Agent[]; agentId: string | undefined }): VNode {
  const choose = (event: Event) => {
    const { value } = event.target as HTMLSelectElement
    go(value === '' ? link('sessions') : `${link('sessions')}?agent=${encodeURIComponent(value)}`, { replace: true })
  }
  const isKnown = agentId === undefined || agents.some(({ id }) => id === agentId)
  return html`<p><label>Agent <select onChange=${choose}>
    <option value="">all</option>
    ${!isKnown && html`<option selected>${agentId}</option>`}
    ${agents.map(({ id, name }) => html`<option key=${id} value=${id} selected=${id === agentId}>${name}</option>`)}
  </select></label></p>`
}

function NewSession(): VNode {
  const { value: agents, error } = useLoad(async () => (await api.agents.list()).data, [])
  const options = agents?.map(({ id, name }: Agent) => ({ value: id, label: name }))
  const create = async (values: Record<string, unknown>) => {
    const { agent_id, title } = values as Record<'agent_id' | 'title', string | null>
    const { id } = await api.sessions.create({ agent_id, title })
    go(link('sessions', id), { replace: true })
  }
  const fields = [
    {
      name: 'agent_id',
      label: 'Agent',
      kind: 'choice',
      options,
      none: 'No agent: the default model, without tools',
    },
    { name: 'title', label: 'Title', kind: 'text' },
  ]
  const back = html`<a class="button" href=${link('sessions')}>Back</a>`
  return html`<${Page} title="New session" actions=${back}>
    <${Problem} error=${error} />
    ${agents && html`<${Form} fields=${fields} values=${{ agent_id: route.value.query.get('agent') }} action="Start" onSubmit=${create} />`}
  <//>`
}
