import { useEvery, useLoad } from '../load.ts'
import { canNotify, isNotifying, switchNotifications } from '../notifications.ts'
import { commandFor } from '../parts/command.ts'
import { Empty } from '../parts/empty.ts'
import { ActionButton, Page, Problem } from '../parts/page.ts'
import { Skeleton } from '../parts/skeleton.ts'
import { link } from '../router.ts'
import { html, useEffect, useLayoutEffect, useRef, useState, type VNode } from '../ui.ts'
import { waitingCount } from '../waiting.ts'
import { Card } from './inbox-card.ts'
import { keysOf, standing, type Waiting } from './inbox-cards.ts'
import { useInboxKeys } from './inbox-keys.ts'
import { createReader } from './inbox-reader.ts'

/** Interval between polls of the inbox. */
const LOOK_MS = 5000
const PAGE = 20

/** Calls of all sessions that wait for a person, longest waiting first. Later calls are shown on request. */
export function View(): VNode {
  const [count, setCount] = useState(PAGE)
  const [agent, setAgent] = useState('')
  const [reader] = useState(createReader)
  // Reads one page more, so that calls that are over do not pull unseen ones into the list.
  const { value: found, error, refresh } = useLoad(() => reader.read(count + PAGE, agent), [count, agent])
  useEvery(LOOK_MS, refresh)
  const list = useRef<HTMLUListElement>(null)
  const [cards, setCards] = useState<Waiting[]>([])
  // The filter comes with the cards, because it moves them.
  const [agents, setAgents] = useState<[string, string][]>([])
  const isAsked = useRef(true)
  const latest = found?.slice(0, count) ?? []
  const show = () => {
    setCards(latest)
    setAgents([...reader.agents])
  }
  useLayoutEffect(() => {
    if (found === undefined) return
    const isPointedAt = list.current?.matches(':hover') ?? false
    if (isAsked.current) show()
    else setCards(standing(cards, found, isPointedAt).slice(0, count))
    isAsked.current = false
    // All of them: the title of the page need not wait for its own count.
    if (agent === '' && found.length < count + PAGE) waitingCount.value = found.length
  }, [found])
  useInboxKeys(list)
  const [shown, waiting] = [keysOf(cards), keysOf(found ?? [])]
  const fresh = isAsked.current ? [] : latest.filter((item) => ![...keysOf([item])].every((key) => shown.has(key)))
  const next = useRef<string>(undefined)
  const showFresh = () => {
    next.current = fresh[0]?.turn.id
    show()
  }
  useEffect(() => {
    if (next.current !== undefined) document.getElementById(next.current)?.focus()
    next.current = undefined
  }, [cards])
  const read = (change: () => void) => {
    isAsked.current = true
    change()
  }
  const news = html`<span role="status">${fresh.length > 0 && html`<button type="button" class="news" onClick=${showFresh}>${fresh.length} new</button>`}</span>`
  return html`<${Page} title="Inbox" actions=${html`${news}<${Notify} />`}>
    <${Problem} error=${error} />
    ${agents.length > 1 && html`<${Filter} agents=${agents} agent=${agent} choose=${(id: string) => read(() => setAgent(id))} />`}
    ${found === undefined && error === undefined && html`<${Skeleton} />`}
    ${found?.length === 0 && html`<${Nothing} />`}
    <ul class="cards inbox" aria-live="polite" ref=${list}>${cards.map((item) => html`<${Card} key=${item.turn.id} ...${item} waiting=${waiting} />`)}</ul>
    ${(found?.length ?? 0) > count && html`<button type="button" onClick=${() => read(() => setCount(count + PAGE))}>Show more<//>`}
  <//>`
}

const Notify = (): VNode | null =>
  canNotify()
    ? html`<${ActionButton} icon="bell" run=${switchNotifications}>${isNotifying.value ? 'Stop notifying me' : 'Notify me'}<//>`
    : null

type FilterProps = { agents: [string, string][]; agent: string; choose(id: string): void }

const Filter = ({ agents, agent, choose }: FilterProps): VNode => html`<div class="filters">
  <label>Agent <select value=${agent} onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) => choose(currentTarget.value)}>
    <option value="">All agents</option>${agents.map(([id, name]) => html`<option key=${id} value=${id}>${name}</option>`)}
  </select></label>
</div>`

/** Agent that asks before it writes a file. */
const CAREFUL = {
  name: 'Careful writer',
  system_prompt: 'Write what is asked for into a file.',
  capabilities: ['session_file_system'],
  tools: [{ type: 'builtin', name: 'write_file', policy: 'requires_approval' }],
}

const Nothing = (): VNode => html`<${Empty} icon="inbox" title="Nothing is waiting for you"
  about="Approvals and questions of all agents come here. An agent asks before it runs a tool that needs an approval, and when it has a question."
  action=${html`<a class="button" href=${link('agents')}>Choose the tools that need an approval</a>`} code=${commandFor('/v1/agents', CAREFUL)} />`
