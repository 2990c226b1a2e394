import { route } from '../../router.ts'
import { html, type VNode } from '../../ui.ts'
import { AgentView } from './agent-page.ts'
import { NewAgent } from './new.ts'
import { Versions } from './versions.ts'

/** One agent at `#/agents/<id>` with its versions at `…/versions`, and a form at `#/agents/new`. */
export function View(): VNode {
  const [, id, part] = route.value.path
  if (id === 'new') return html`<${NewAgent} />`
  if (part === 'versions') return html`<${Versions} key=${id} agentId=${id} />`
  return html`<${AgentView} key=${id} agentId=${id} />`
}
