import type { CreateLlmProviderRequest, LlmProvider, UpdateLlmProviderRequest } from 'agent-session-client'
import { keyChanges, REMOVE_KEY, STATUS } from '../parts/common-fields.ts'
import { viewOf } from '../parts/list-view.ts'
import type { Resource } from '../parts/resource.ts'
import { Time } from '../parts/time.ts'
import { api, isAdministrator } from '../service.ts'
import { html } from '../ui.ts'
import { ModelTabs } from './model-tabs.ts'

const TYPES = {
  openai: 'OpenAI',
  openai_completions: 'OpenAI-compatible (chat completions)',
  anthropic: 'Anthropic',
  gemini: 'Gemini',
  llmsim: 'Simulator',
}
const options = (labels: Record<string, string>) => Object.entries(labels).map(([value, label]) => ({ value, label }))

const llmProviders: Resource<LlmProvider> = {
  path: 'llm-providers',
  title: 'Providers',
  icon: 'provider',
  Tabs: ModelTabs,
  one: 'provider',
  mayWrite: isAdministrator,
  about:
    'Services that host models. Once one is added, sync or add its models, and make one the default. Keys are never shown.',
  list: async () => (await api.providers.list()).data,
  idOf: ({ id }) => id,
  nameOf: ({ name }) => name,
  columns: [
    { title: 'Type', cell: ({ provider_type }) => TYPES[provider_type] ?? provider_type },
    { title: 'Key', cell: ({ api_key_set }) => (api_key_set ? 'stored' : 'none') },
    { title: 'Status', cell: ({ status }) => status },
    { title: 'Synced', cell: ({ last_synced_at }) => html`<${Time} at=${last_synced_at} />` },
  ],
  fields: (item) => [
    { name: 'name', label: 'Name', kind: 'text', isRequired: true },
    { name: 'provider_type', label: 'Type', kind: 'choice', isRequired: true, options: options(TYPES) },
    {
      name: 'api_key',
      label: 'API key',
      kind: 'secret',
      hint: item?.api_key_set ? 'A key is stored. Leave this empty to keep it.' : undefined,
    },
    ...(item?.api_key_set ? [REMOVE_KEY] : []),
    { name: 'base_url', label: 'Base URL', kind: 'text', hint: 'Empty: the provider’s own.' },
    ...(item === undefined ? [] : [STATUS]),
  ],
  valuesOf: ({ name, provider_type, base_url, status }) => ({ name, provider_type, base_url, status }),
  create: (values) => api.providers.create(values as CreateLlmProviderRequest),
  update: ({ id }, { base_url, ...changes }) =>
    api.providers.update({
      provider_id: id,
      ...({
        ...keyChanges(changes),
        ...(base_url !== undefined && { base_url: base_url ?? '' }),
      } as UpdateLlmProviderRequest),
    }),
  actions: [
    {
      label: 'Sync models',
      isOffered: ({ provider_type }) => provider_type !== 'llmsim',
      run: async ({ id }) => {
        const result = await api.providers.syncModels({ provider_id: id })
        if (result.status === 'not_supported') return 'This provider has no list of models: add them by hand.'
        return `${result.created} added, ${result.updated} updated, ${result.stale} no longer listed.`
      },
    },
  ],
  remove: {
    label: 'Delete',
    isOffered: ({ is_predefined }) => !is_predefined,
    question: ({ name }) => `Delete the provider “${name}” with its models? Agents that use them cannot answer then.`,
    run: ({ id }) => api.providers.delete({ provider_id: id }),
  },
}

export const View = viewOf(llmProviders)
