import type { ApiKey, CreateApiKeyRequest, CreatedApiKey } from 'agent-session-client'
import { Time } from '../parts/page.ts'
import type { Resource } from '../parts/resource.ts'
import { api } from '../service.ts'
import { html } from '../ui.ts'

export const apiKeys: Resource<ApiKey> = {
  path: 'api-keys',
  title: 'API keys',
  one: 'API key',
  about: 'For programs: they send a key as “Authorization: Bearer …”, and may do what it allows in your organizations.',
  list: async () => (await api.listApiKeys()).data,
  idOf: ({ id }) => id,
  nameOf: ({ name }) => name,
  columns: [
    { title: 'Begins with', cell: ({ key_prefix }) => html`<code>${key_prefix}</code>` },
    { title: 'May', cell: ({ scopes }) => (scopes.length === 0 ? 'everything' : scopes.join(', ')) },
    { title: 'Last used', cell: ({ last_used_at }) => html`<${Time} at=${last_used_at} />` },
    { title: 'Ends', cell: ({ expires_at }) => (expires_at ? html`<${Time} at=${expires_at} />` : 'never') },
  ],
  fields: () => [
    { name: 'name', label: 'Name', kind: 'text', isRequired: true },
    {
      name: 'scopes',
      label: 'May',
      kind: 'lines',
      hint: 'One a line: read, write, or sessions:read and the like. Empty: everything.',
    },
    { name: 'expires_in_days', label: 'Days until it ends', kind: 'number', hint: 'Empty: it does not end.' },
  ],
  create: (values) => api.createApiKey({ body: values as CreateApiKeyRequest }),
  Created: ({ item }) =>
    html`<p role="status">This is the key. It is shown only now:</p><p><code class="secret">${(item as CreatedApiKey).key}</code></p>`,
  remove: {
    label: 'Revoke',
    question: ({ name }) => `Revoke the key “${name}”? Programs that use it are refused at once.`,
    run: ({ id }) => api.revokeApiKey({ path: { key_id: id } }),
  },
}
