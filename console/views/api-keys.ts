import type { ApiKey, CreateApiKeyRequest, CreatedApiKey } from 'agent-session-client'
import { Badge } from '../parts/badge.ts'
import { commandFor } from '../parts/command.ts'
import { viewOf } from '../parts/list-view.ts'
import { CopyButton } from '../parts/page.ts'
import type { Resource } from '../parts/resource.ts'
import { Time } from '../parts/time.ts'
import { api, auth } from '../service.ts'
import { html } from '../ui.ts'

const apiKeys: Resource<ApiKey> = {
  path: 'api-keys',
  title: 'API keys',
  icon: 'key',
  one: 'API key',
  about: () =>
    auth.value?.mode === 'none'
      ? 'Programs sign in with a key. Until the service has a sign-in, nobody needs one.'
      : 'Programs sign in with a key, which they send as “Authorization: Bearer …”.',
  example: () => commandFor('/v1/auth/api-keys', { name: 'Deployment', scopes: ['read'] }),
  list: async () => (await api.auth.listApiKeys()).data,
  idOf: ({ id }) => id,
  nameOf: ({ name }) => name,
  columns: [
    { title: 'Prefix', cell: ({ key_prefix }) => html`<code>${key_prefix}</code>` },
    {
      title: 'Scopes',
      cell: ({ scopes }) =>
        html`<span class="badges">${(scopes.length === 0 ? ['everything'] : scopes).map((scope) => html`<${Badge} key=${scope} status=${scope} icon="key" />`)}</span>`,
    },
    { title: 'Last used', cell: ({ last_used_at }) => (last_used_at ? html`<${Time} at=${last_used_at} />` : 'never') },
    { title: 'Expires', cell: ({ expires_at }) => (expires_at ? html`<${Time} at=${expires_at} />` : 'never') },
  ],
  fields: () => [
    { name: 'name', label: 'Name', kind: 'text', isRequired: true },
    {
      name: 'scopes',
      label: 'Scopes',
      kind: 'lines',
      hint: 'One on each line: read, write, or for one kind of thing, such as sessions:read. Empty: everything.',
    },
    { name: 'expires_in_days', label: 'Expires in days', kind: 'number', hint: 'Empty: never.' },
  ],
  create: (values) => api.auth.createApiKey(values as CreateApiKeyRequest),
  Created: ({ item }) => {
    const { key } = item as CreatedApiKey
    return html`<p role="status">Copy the key now. It is not shown again.</p>
      <p><code class="secret">${key}</code> <${CopyButton} text=${key} /></p>`
  },
  remove: {
    label: 'Revoke',
    icon: 'trash',
    question: ({ name }) => `Revoke the key “${name}”? Programs that use it stop working at once.`,
    run: ({ id }) => api.auth.revokeApiKey({ key_id: id }),
  },
}

export const View = viewOf(apiKeys)
