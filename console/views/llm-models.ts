import type { LlmModelWithProvider, UpdateLlmModelRequest } from 'agent-session-client'
import { Badge, StatusBadge } from '../parts/badge.ts'
import { STATUS } from '../parts/common-fields.ts'
import type { Field } from '../parts/form.ts'
import { viewOf } from '../parts/list-view.ts'
import type { Resource } from '../parts/resource.ts'
import { api, isAdministrator } from '../service.ts'
import { html } from '../ui.ts'
import { ModelTabs } from './model-tabs.ts'

const update = ({ id }: { id: string }, body: UpdateLlmModelRequest) => api.models.update({ id, ...body })

const NAME: Field = { name: 'display_name', label: 'Name', kind: 'text', isRequired: true }

const tokens = (count: number | undefined): string => (count ? count.toLocaleString() : '')

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
    { title: 'Model', cell: ({ model_id }) => html`<code class="one-line" title=${model_id}>${model_id}</code>` },
    { title: 'Provider', cell: ({ provider_name }) => html`<span class="one-line" dir="auto">${provider_name}</span>` },
    {
      title: 'Status',
      cell: ({ status, is_default, is_stale }) => html`<span class="badges">
        ${is_default && html`<${Badge} status="default" />`}
        ${is_stale ? html`<${Badge} status="No longer listed" icon="history" />` : (!is_default || status !== 'active') && html`<${StatusBadge} status=${status} />`}</span>`,
    },
    { title: 'Context', isNumber: true, isMinor: true, cell: ({ profile }) => tokens(profile?.limits?.context) },
    { title: '$/M in', isNumber: true, isMinor: true, cell: ({ profile }) => profile?.cost?.input },
    { title: '$/M out', isNumber: true, isMinor: true, cell: ({ profile }) => profile?.cost?.output },
  ],
  hidden: { label: 'Show models that their provider no longer lists', isHidden: ({ is_stale }) => is_stale },
  fields: async (item) => {
    if (item !== undefined) return [NAME, STATUS]
    const { data } = await api.providers.list()
    const options = data.map(({ id, name }) => ({ value: id, label: name }))
    return [
      { name: 'provider_id', label: 'Provider', kind: 'choice', isRequired: true, options },
      {
        name: 'model_id',
        label: 'Model',
        kind: 'text',
        isRequired: true,
        hint: 'The provider’s own id of it, such as gpt-5-mini.',
      },
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
      icon: 'check',
      isOffered: ({ is_default, status }) => !is_default && status === 'active',
      run: (item) => update(item, { is_default: true }),
    },
  ],
  remove: {
    label: 'Delete',
    isOffered: ({ source }) => source !== 'predefined',
    question: ({ display_name }) => `Delete the model “${display_name}”? Agents that use it fall back to the default.`,
    run: ({ id }) => api.models.delete({ id }),
  },
}

export const View = viewOf(llmModels)
