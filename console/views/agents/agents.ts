import { route } from '../../router.ts'
import { html, type VNode } from '../../ui.ts'
import { AgentView } from './agent.ts'
import { AgentList } from './list.ts'
import { NewAgent } from './new.ts'
import { Versions } from './versions.ts'

/** Agents at `#/agents`, one at `#/agents/<id>` with its versions at `…/versions`, a form at `#/agents/new`. */
export function View(): VNode {
  const [, id, part] = route.value.path
  if (id === 'new') return html`<${NewAgent} />`
  if (id !== undefined && part === 'versions') return html`<${Versions} key=${id} agentId=${id} />`
  if (id !== undefined) return html`<${AgentView} key=${id} agentId=${id} />`
  return html`<${AgentList} key=${route.value.query.get('status')} />`
}
