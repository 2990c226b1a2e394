import {
  ApiError,
  type CreateLlmProviderRequest,
  type LlmModelWithProvider,
  type LlmProvider,
} from 'agent-session-client'
import { useLoad } from '../load.ts'
import { Badge } from '../parts/badge.ts'
import { optionsOf } from '../parts/choice.ts'
import { type Field, Form, givenOf, type Values } from '../parts/form.ts'
import { notify } from '../parts/notice.ts'
import { Page, Problem, Quiet } from '../parts/page.ts'
import { go, link } from '../router.ts'
import { api } from '../service.ts'
import { html, useState, type VNode } from '../ui.ts'

export const TYPES: Record<LlmProvider['provider_type'], string> = {
  openai: 'OpenAI',
  anthropic: 'Anthropic',
  gemini: 'Gemini',
  openai_completions: 'OpenAI-compatible (chat completions)',
  llmsim: 'Simulator',
}
export const TYPE: Field = {
  name: 'provider_type',
  label: 'Type',
  kind: 'choice',
  isRequired: true,
  options: optionsOf(TYPES),
}

const FIELDS: Field[] = [
  TYPE,
  { name: 'api_key', label: 'API key', kind: 'secret', hint: 'It is stored encrypted, and never shown again.' },
  {
    name: 'base_url',
    label: 'Base URL',
    kind: 'text',
    hint: 'For a server of your own or a proxy, such as https://llm.example.com/v1. Empty: the provider’s own address.',
  },
  { name: 'name', label: 'Name', kind: 'text', hint: 'Empty: the type.' },
]

/** Outcome of the first sync, or none if the provider was saved without a test. */
type Made = { provider: LlmProvider; hasList: boolean }

const create = (values: Values): Promise<LlmProvider> => {
  const { provider_type, name = TYPES[provider_type as LlmProvider['provider_type']], ...given } = givenOf(values)
  return api.providers.create({ provider_type, name, ...given } as CreateLlmProviderRequest)
}

/** Creates a provider and asks it for its models. A provider that does not answer is deleted again. */
async function createTested(values: Values): Promise<Made> {
  const provider = await create(values)
  if (provider.provider_type === 'llmsim') return { provider, hasList: true }
  try {
    const { status } = await api.providers.syncModels({ provider_id: provider.id })
    return { provider, hasList: status === 'success' }
  } catch (error) {
    await api.providers.delete({ provider_id: provider.id })
    throw error
  }
}

/** Makes a provider in one page: its key is tested, its models are read, and one of them becomes the default. */
export function NewProvider(): VNode {
  const [made, setMade] = useState<Made | undefined>(undefined)
  const [isRefused, setRefused] = useState(false)
  const test = (values: Values) =>
    createTested(values).then(setMade, (error: unknown) => {
      // The service has read the values, but the provider did not answer as it should.
      setRefused(error instanceof ApiError && error.status === 502)
      throw error
    })
  const keep = async (values: Values) => {
    await create(values)
    notify('The provider is saved without a test.')
    go(link('llm-providers'))
  }
  const others = isRefused ? [{ action: 'Save without a test', run: keep }] : []
  return html`<${Page} title="New provider" back=${{ title: 'Providers', href: link('llm-providers') }}>
    ${
      made === undefined
        ? html`<${Form} fields=${FIELDS} action="Test and save" onSubmit=${test} others=${others} />`
        : html`<${Found} ...${made} />`
    }
  <//>`
}

function Found({ provider, hasList }: Made): VNode {
  return html`<p role="status"><${Badge} status="completed" word=${hasList ? 'Connected' : 'Saved'} /> ${provider.name} is saved.
    ${!hasList && html` It answers, but has no list of models. <a href=${link('llm-models', 'new')}>Add a model</a> by its id.`}</p>
    ${hasList && html`<${DefaultModel} provider=${provider} isNew onDone=${() => go(link('llm-providers'))} />`}`
}

/** Newest of the models that can call tools first, then the others in the order of the provider. */
const byUse = (a: LlmModelWithProvider, b: LlmModelWithProvider): number => {
  const rank = ({ profile }: LlmModelWithProvider) => (profile?.tool_call ? (profile.release_date ?? '0') : '')
  return rank(b).localeCompare(rank(a))
}

type DefaultProps = { provider: LlmProvider; isNew?: boolean; onDone(): void }

/** Number of a provider's models, and the choice of the default among them. */
export function DefaultModel({ provider, isNew = false, onDone }: DefaultProps): VNode {
  const { value: models, error } = useLoad(async () => (await api.models.list()).data, [provider.last_synced_at])
  if (models === undefined) return html`<${Problem} error=${error} />`
  const own = models.filter(({ provider_id, status }) => provider_id === provider.id && status === 'active').sort(byUse)
  const current = models.find(({ is_default }) => is_default)
  if (own.length === 0) return html`<${Quiet}>No model of it is active yet.<//>`
  const isSimulated = current === undefined || current.provider_type === 'llmsim'
  const isOwn = current?.provider_id === provider.id
  const field: Field = {
    name: 'model',
    label: 'Default model',
    kind: 'choice',
    isRequired: isOwn || isSimulated,
    none: `${current?.display_name} (${current?.provider_name})`,
    options: own.map(({ id, display_name }) => ({ value: id, label: display_name })),
    hint: 'Agents without a model of their own use it.',
  }
  const save = async ({ model }: Values) => {
    const chosen = own.find(({ id }) => id === model)
    if (chosen) {
      await api.models.update({ id: chosen.id, is_default: true })
      notify(`${chosen.display_name} is the default model now.`)
    }
    onDone()
  }
  return html`<p>${own.length === 1 ? 'One model is' : `${own.length} models are`} ready to use.</p>
    <${Form} fields=${[field]} values=${{ model: isOwn ? current?.id : undefined }} action="Use as the default" onSubmit=${save} others=${isNew ? [{ action: 'Not now', run: async () => onDone() }] : []} isFleeting />`
}
