import { route } from '../../router.ts'
import { html, type VNode } from '../../ui.ts'
import { AgentView } from './agent.ts'
import { AgentList } from './list.ts'
import { NewAgent } from './new.ts'

/** Agents at `#/agents`, one at `#/agents/<id>`, a form at `#/agents/new`. */
export function View(): VNode {
  const id = route.value.path[1]
  if (id === 'new') return html`<${NewAgent} />`
  if (id !== undefined) return html`<${AgentView} key=${id} agentId=${id} />`
  return html`<${AgentList} key=${route.value.query.get('status')} />`
}
