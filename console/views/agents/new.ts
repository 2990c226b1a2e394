import type { CreateAgentRequest } from 'agent-session-client'
import { Page, Quiet } from '../../parts/page.ts'
import { go, link } from '../../router.ts'
import { api } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'
import { Editor } from './editor.ts'

const EMPTY: CreateAgentRequest = { name: '', system_prompt: '' }

export function NewAgent(): VNode {
  const create = async (body: CreateAgentRequest) => {
    const { id } = await api.agents.create(body)
    go(link('agents', id), { replace: true })
  }
  return html`<${Page} title="New agent" actions=${html`<a class="button" href=${link('agents')}>Back</a>`}>
    <${Quiet}>A name and a prompt are enough. Everything can be changed later; sessions that run take the changes too.<//>
    <${Editor} agent=${EMPTY} action="Create" onSubmit=${create} />
  <//>`
}
