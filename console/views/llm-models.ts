import type { LlmModelWithProvider, UpdateLlmModelRequest } from 'agent-session-client'
import { STATUS } from '../parts/common-fields.ts'
import type { Field } from '../parts/form.ts'
import { viewOf } from '../parts/list-view.ts'
import type { Resource } from '../parts/resource.ts'
import { api, isAdministrator } from '../service.ts'
import { html } from '../ui.ts'
import { ModelTabs } from './model-tabs.ts'

const update = ({ id }: { id: string }, body: UpdateLlmModelRequest) => api.models.update({ id, ...body })

const NAME: Field = { name: 'display_name', label: 'Name', kind: 'text', isRequired: true }

const llmModels: Resource<LlmModelWithProvider> = {
  path: 'llm-models',
  title: 'Models',
  icon: 'model',
  Tabs: ModelTabs,
  one: 'model',
  mayWrite: isAdministrator,
  about: 'Agents without a model of their own use the default.',
  list: async () => (await api.models.list({ include_stale: true })).data,
  get: (id) => api.models.get({ id }),
  idOf: ({ id }) => id,
  nameOf: ({ display_name }) => display_name,
  columns: [
    { title: 'Model', cell: ({ model_id }) => html`<code>${model_id}</code>` },
    { title: 'Provider', cell: ({ provider_name }) => provider_name },
    {
      title: 'Status',
      cell: ({ status, is_default, is_stale }) =>
        html`${status}${is_default && html` <mark>default</mark>`}${is_stale && ' (no longer listed by the provider)'}`,
    },
  ],
  fields: async (item) => {
    if (item !== undefined) return [NAME, STATUS]
    const { data } = await api.providers.list()
    const options = data.map(({ id, name }) => ({ value: id, label: name }))
    return [
      { name: 'provider_id', label: 'Provider', kind: 'choice', isRequired: true, options },
      { name: 'model_id', label: 'Model', kind: 'text', isRequired: true, hint: 'Identifier at the provider.' },
      NAME,
    ]
  },
  valuesOf: ({ display_name, status }) => ({ display_name, status }),
  create: async (values) => {
    const { provider_id, ...body } = values as Record<'provider_id' | 'model_id' | 'display_name', string>
    const { id } = await api.models.create({ provider_id, ...body })
    return api.models.get({ id })
  },
  update,
  actions: [
    {
      label: 'Make default',
      isOffered: ({ is_default, status }) => !is_default && status === 'active',
      run: (item) => update(item, { is_default: true }),
    },
  ],
  remove: {
    label: 'Delete',
    isOffered: ({ source }) => source !== 'predefined',
    question: ({ display_name }) => `Delete the model “${display_name}”? Agents that use it cannot answer then.`,
    run: ({ id }) => api.models.delete({ id }),
  },
}

export const View = viewOf(llmModels)
