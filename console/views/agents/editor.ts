import type { Agent, AgentPreviewResponse, CapabilityInfo, CreateAgentRequest, LlmModel } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { type Field, Form, type Values } from '../../parts/form.ts'
import { Problem, Quiet } from '../../parts/page.ts'
import { link } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useState, type VNode } from '../../ui.ts'
import { Capabilities, type Chosen, chosenOf, configsOf, toolsOfChosen } from './capabilities.ts'
import { Preview } from './preview.ts'
import { type Draft, draftsOf, Tools, toolsOf } from './tools.ts'

type Props = {
  agent: Pick<Agent, 'name' | 'system_prompt'> & Partial<Agent>
  action: string
  done?: string
  onSubmit(agent: CreateAgentRequest): Promise<unknown>
}

/** Form of an agent. */
export function Editor(props: Props): VNode {
  const { value, error } = useLoad(async () => {
    const [models, capabilities] = await Promise.all([
      api.models.list({ include_stale: true }),
      api.capabilities.list(),
    ])
    return { models: models.data, capabilities: capabilities.data }
  }, [])
  if (value === undefined)
    return error === undefined ? html`<${Quiet}>Loading…<//>` : html`<${Problem} error=${error} />`
  return html`<${Fields} ...${props} ...${value} />`
}

type FieldsProps = Props & { models: LlmModel[]; capabilities: CapabilityInfo[] }

function Fields({ agent, action, done, onSubmit, models, capabilities }: FieldsProps): VNode {
  const [chosen, setChosen] = useState<Chosen>(() => chosenOf(agent.capabilities ?? []))
  const [drafts, setDrafts] = useState<Draft[]>(() => draftsOf(agent.tools ?? []))
  const [preview, setPreview] = useState<AgentPreviewResponse | undefined>(undefined)
  const wanted = (values: Values): CreateAgentRequest => ({
    ...(values as Pick<CreateAgentRequest, 'name' | 'system_prompt' | 'description' | 'default_model_id' | 'tags'>),
    capabilities: configsOf(chosen),
    tools: toolsOf(drafts),
  })
  const show = async (values: Values) => {
    setPreview(undefined)
    const { system_prompt, capabilities: refs, tools } = wanted(values)
    setPreview(await api.agents.preview({ system_prompt, capabilities: refs, tools }))
  }
  return html`
    <${Form} fields=${fieldsFor(models, agent.default_model_id)} values=${agent} action=${action} done=${done} onSubmit=${(values: Values) => onSubmit(wanted(values))}
      others=${[{ action: 'Preview', run: show }]}>
      <${Capabilities} all=${capabilities} chosen=${chosen} onChange=${setChosen} />
      <${Tools} drafts=${drafts} available=${toolsOfChosen(capabilities, chosen)} onChange=${setDrafts} />
    <//>
    ${preview && html`<${Preview} preview=${preview} />`}`
}

const fieldsFor = (models: LlmModel[], chosen: string | null | undefined): Field[] => [
  { name: 'name', label: 'Name', kind: 'text', isRequired: true },
  {
    name: 'system_prompt',
    label: 'Prompt',
    kind: 'longtext',
    isRequired: true,
    hint: 'Instructions that the model gets before the conversation.',
  },
  {
    name: 'default_model_id',
    label: 'Model',
    kind: 'choice',
    none: 'the organization’s default',
    hint: html`Add a <a href=${link('llm-providers')}>provider</a> for more models.`,
    options: models
      .filter(({ id, status, is_stale }) => id === chosen || (status === 'active' && !is_stale))
      .map(({ id, display_name, is_default, status }) => ({
        value: id,
        label: `${display_name}${is_default ? ' (default)' : ''}${status === 'active' ? '' : ` (${status})`}`,
      })),
  },
  {
    name: 'description',
    label: 'Description',
    kind: 'longtext',
    rows: 2,
    empty: '',
    hint: 'Shown in lists, not sent to the model.',
  },
  { name: 'tags', label: 'Tags', kind: 'lines', hint: 'One per line.' },
]
