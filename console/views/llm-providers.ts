import type { LlmProvider, UpdateLlmProviderRequest } from 'agent-session-client'
import { Badge, StatusBadge } from '../parts/badge.ts'
import { commandFor } from '../parts/command.ts'
import { keyChanges, REMOVE_KEY, STATUS } from '../parts/common-fields.ts'
import { viewOf } from '../parts/list-view.ts'
import type { Resource } from '../parts/resource.ts'
import { Time } from '../parts/time.ts'
import { api, isAdministrator } from '../service.ts'
import { html } from '../ui.ts'
import { ModelTabs } from './model-tabs.ts'
import { DefaultModel, NewProvider, TYPE, TYPES } from './new-provider.ts'

/** Reports whether a provider's public address would refuse every call. */
const lacksKey = ({ provider_type, base_url, api_key_set }: LlmProvider): boolean =>
  provider_type !== 'llmsim' && !base_url && !api_key_set

const llmProviders: Resource<LlmProvider> = {
  path: 'llm-providers',
  title: 'Providers',
  icon: 'provider',
  Tabs: ModelTabs,
  one: 'provider',
  mayWrite: isAdministrator,
  about: 'Services that run models, such as OpenAI, Anthropic, Gemini, or a server of your own.',
  example: () => commandFor('/v1/llm-providers', { name: 'OpenAI', provider_type: 'openai', api_key: 'sk-…' }),
  list: async () => (await api.providers.list()).data,
  idOf: ({ id }) => id,
  nameOf: ({ name }) => name,
  columns: [
    { title: 'Type', cell: ({ provider_type }) => TYPES[provider_type] ?? provider_type },
    {
      title: 'Status',
      cell: (provider) =>
        provider.status === 'active' && lacksKey(provider)
          ? html`<${Badge} status="No key" icon="key" tone="wait" />`
          : html`<${StatusBadge} status=${provider.status} />`,
    },
    {
      title: 'Address',
      isMinor: true,
      cell: ({ base_url }) => base_url && html`<code class="one-line" title=${base_url}>${base_url}</code>`,
    },
    {
      title: 'Models read',
      cell: ({ last_synced_at, provider_type }) =>
        last_synced_at ? html`<${Time} at=${last_synced_at} />` : provider_type !== 'llmsim' && 'never',
    },
  ],
  fields: (item) => [
    { name: 'name', label: 'Name', kind: 'text', isRequired: true },
    TYPE,
    {
      name: 'api_key',
      label: 'API key',
      kind: 'secret',
      hint: item?.api_key_set ? 'A key is stored. Leave this empty to keep it.' : undefined,
    },
    ...(item?.api_key_set ? [REMOVE_KEY] : []),
    { name: 'base_url', label: 'Base URL', kind: 'text', hint: 'Empty: the provider’s own address.' },
    STATUS,
  ],
  valuesOf: ({ name, provider_type, base_url, status }) => ({ name, provider_type, base_url, status }),
  New: NewProvider,
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
      label: 'Test and read models',
      icon: 'again',
      isOffered: ({ provider_type }) => provider_type !== 'llmsim',
      run: async ({ id }) => {
        const result = await api.providers.syncModels({ provider_id: id })
        if (result.status === 'not_supported') return 'It answers, but has no list of models. Add them by their ids.'
        const stale = result.stale > 0 ? `, ${result.stale} no longer listed` : ''
        return `It works: ${result.created} new models, ${result.updated} known ones${stale}.`
      },
    },
  ],
  Detail: ({ item, reload }) =>
    html`<section><h2>Models</h2><${DefaultModel} provider=${item} onDone=${reload} /></section>`,
  remove: {
    label: 'Delete',
    isOffered: ({ is_predefined }) => !is_predefined,
    question: ({ name }) =>
      `Delete the provider “${name}” with its models? Agents that use them fall back to the default.`,
    run: ({ id }) => api.providers.delete({ provider_id: id }),
  },
}

export const View = viewOf(llmProviders)
