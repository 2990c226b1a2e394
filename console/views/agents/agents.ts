import { Lazy } from '../../parts/lazy.ts'
import { route } from '../../router.ts'
import { html, type VNode } from '../../ui.ts'
import { AgentList } from './list.ts'

const loadAgent = () => import('./agent.ts')

/** Agents at `#/agents`, and the pages of one agent, whose chunk is loaded when one is opened. */
export function View(): VNode {
  const id = route.value.path[1]
  if (id !== undefined) return html`<${Lazy} title=${id === 'new' ? 'New agent' : 'Agent'} load=${loadAgent} />`
  return html`<${AgentList} key=${route.value.query.get('status')} />`
}
