import { useLoad } from '../../load.ts'
import { AgentSelect } from '../../parts/agent-select.ts'
import { type Field, Form, givenOf } from '../../parts/form.ts'
import { Page, Problem } from '../../parts/page.ts'
import { Skeleton } from '../../parts/skeleton.ts'
import { go, link, route } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useState, type VNode } from '../../ui.ts'
import { placeOf, shownFilter } from './session-list.ts'

const NONE = 'No agent: the default model, without tools'

/** Form for a new session, at `#/sessions/new`; the address may name its agent. */
export function NewSession(): VNode {
  const { value: models, error } = useLoad(async () => {
    const { data } = await api.models.list()
    return data.filter(({ status }) => status === 'active')
  }, [])
  const [agentId, setAgentId] = useState(route.value.query.get('agent') ?? '')
  const create = async (values: Record<string, unknown>) => {
    const { id } = await api.sessions.create(givenOf({ ...values, agent_id: agentId }))
    go(link('sessions', id), { replace: true })
  }
  const fields: Field[] = [
    { name: 'title', label: 'Title', kind: 'text', hint: 'Without one, the first message is its title.' },
    {
      name: 'model_id',
      label: 'Model',
      kind: 'choice',
      none: 'The agent’s model',
      options: models?.map(({ id, display_name, provider_name }) => ({
        value: id,
        label: `${display_name} (${provider_name})`,
      })),
    },
    {
      name: 'snapshots',
      label: 'Keep files and data as they were after each turn',
      kind: 'boolean',
      hint: 'A fork then begins with the files of its turn; otherwise with the files of now.',
    },
  ]
  return html`<${Page} title="New session" back=${{ title: 'Sessions', href: placeOf(shownFilter.value) }}>
    <${Problem} error=${error} />
    ${models === undefined && error === undefined && html`<${Skeleton} />`}
    ${
      models &&
      html`<div class="form new-session"><div class="field"><label for="agent">Agent</label>
          <${AgentSelect} id="agent" value=${agentId} none=${NONE} onChange=${setAgentId} /></div></div>
        <${Form} fields=${fields} action="Start" onSubmit=${create} />`
    }
  <//>`
}
