import type { CreateAgentRequest } from 'agent-session-client'
import { Page, Problem, Quiet } from '../../parts/page.ts'
import { Skeleton } from '../../parts/skeleton.ts'
import { go, link } from '../../router.ts'
import { api } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'
import { useCatalogue } from './catalogue.ts'
import { Editor } from './editor.ts'

export function NewAgent(): VNode {
  const { value, error } = useCatalogue()
  const create = async (body: CreateAgentRequest) => {
    const { id } = await api.agents.create(body)
    go(link('agents', id), { replace: true })
    return true
  }
  return html`<${Page} title="New agent" back=${{ title: 'Agents', href: link('agents') }}>
    <${Quiet}>A name and a prompt are enough. Everything can be changed later, and each change is a version.<//>
    <${Problem} error=${error} />
    ${value ? html`<${Editor} agent=${{}} action="Create" save=${create} ...${value} />` : error === undefined && html`<${Skeleton} />`}
  <//>`
}
